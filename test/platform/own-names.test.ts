import { expect, test } from 'vitest'
import { ownNames } from '../../src/platform/http/own-names.ts'

const hostsOf = (domain: string, baseUrl: string, ...nameservers: string[]) =>
  [...ownNames({ baseUrl, nameservers, edge: { domain } }).hosts].sort()

test('the platform uses the hosts of the API and of every nameserver of the pool', () => {
  const pool = Array.from({ length: 26 }, (_, index) => `n${index}.example.net`)
  expect(hostsOf('example.app', 'https://api.example.com', ...pool)).toEqual(['api.example.com', ...pool].sort())
})

test('names between such a host and the domain of deployments are the platform’s too, the domain’s parents are not', () => {
  expect(hostsOf('example.app', 'https://a.b.c.example.app:8443/x', 'ns.d.example.app')).toEqual(
    ['a.b.c.example.app', 'b.c.example.app', 'c.example.app', 'd.example.app', 'ns.d.example.app'].sort(),
  )
  expect(hostsOf('apps.example.com', 'https://example.com')).toEqual(['example.com'])
  expect(hostsOf('example.com', 'https://example.com')).toEqual(['example.com'])
})

test.each([
  ['capitals', 'Example.APP', 'https://Console.example.app', ' NS1.Example.app '],
  ['last dots', 'example.app.', 'https://console.example.app.', 'ns1.example.app.'],
  ['wide letters', 'ｅxample.app', 'https://ｃonsole.example.app', 'ns１.example.app'],
  ['other dots', 'example。app', 'https://console。example．app', 'ns1｡example.app'],
])('%s do not make another name of it', (_what, domain, baseUrl, nameserver) => {
  expect(ownNames({ baseUrl, nameservers: [nameserver], edge: { domain } }).domain).toBe('example.app')
  expect(hostsOf(domain, baseUrl, nameserver)).toEqual(['console.example.app', 'ns1.example.app'])
})

test('names beyond ASCII are compared in Punycode', () => {
  expect(hostsOf('bücher.example', 'https://konsole.xn--bcher-kva.example', 'täst.BÜCHER.example')).toEqual([
    'konsole.xn--bcher-kva.example',
    'xn--tst-qla.xn--bcher-kva.example',
  ])
})
