// The record types, with an example value of each.
import type { Draft } from './zone-changes.ts'

export const examples: Readonly<Record<string, string>> = {
  A: '192.0.2.10',
  AAAA: '2001:db8::10',
  ALIAS: 'storefront.example.app',
  CAA: '0 issue "letsencrypt.org"',
  CDNSKEY: '257 3 13 mdsswUyr3DPW132mOi8V9xESWE8jTo0d…',
  CDS: '12345 13 2 49FD46E6C4B45C55D4AC…',
  CERT: 'PKIX 0 0 MIIBIjANBgkqhkiG9w0BAQEFAAOC…',
  CNAME: 'storefront.example.app',
  DNAME: 'example.net',
  DS: '12345 13 2 49FD46E6C4B45C55D4AC…',
  HINFO: '"PC" "Linux"',
  HTTPS: '1 . alpn=h2',
  LOC: '52 22 23 N 4 53 32 E -2m',
  MX: '10 mail.example.com',
  NAPTR: '10 20 "s" "SIP+D2U" "" _sip._udp.example.com',
  NS: 'ns1.example.net',
  OPENPGPKEY: 'mQINBFUoCxcBEADf8…',
  PTR: 'host.example.com',
  SMIMEA: '3 0 1 0C72AC70B745AC19998811B1…',
  SRV: '10 5 5060 sip.example.com',
  SSHFP: '4 2 123456789ABCDEF67890…',
  SVCB: '1 svc.example.com alpn=h2',
  TLSA: '3 1 1 0C72AC70B745AC19998811B1…',
  TXT: 'v=spf1 include:_spf.example.com -all',
  URI: '10 1 "https://www.example.com/"',
}

export const recordTypes = Object.keys(examples) as Draft['type'][]
