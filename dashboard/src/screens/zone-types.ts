// The types of records, and how a value of each looks.
import type { Draft } from './zone-changes.ts'

export const examples: Record<Draft['type'], string> = {
  A: '192.0.2.10',
  AAAA: '2001:db8::10',
  ALIAS: 'storefront.example.app',
  CAA: '0 issue "letsencrypt.org"',
  CNAME: 'storefront.example.app',
  DS: '12345 13 2 49FD46E6C4B45C55D4AC…',
  HTTPS: '1 . alpn=h2',
  MX: '10 mail.example.com',
  NS: 'ns1.example.net',
  SRV: '10 5 5060 sip.example.com',
  SVCB: '1 svc.example.com alpn=h2',
  TLSA: '3 1 1 0C72AC70B745AC19998811B1…',
  TXT: 'v=spf1 include:_spf.example.com -all',
}

export const recordTypes = Object.keys(examples) as Draft['type'][]
