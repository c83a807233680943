import { describe, expect, test } from 'vitest'
import { createUrls } from '../../src/platform/http/urls.ts'

const baseUrl = 'https://api.example.com'
const nameservers = ['ns1.example.net', 'ns2.example.net']

describe('addresses', () => {
  test('serve deployments over https in production and at the edge’s port in development', () => {
    const edge = { domain: 'berth.app', httpPort: 8081 }
    expect(createUrls({ baseUrl, nameservers, production: true, edge }).deployment('hello')).toBe(
      'https://hello.berth.app',
    )
    expect(createUrls({ baseUrl, nameservers, production: false, edge }).deployment('hello')).toBe(
      'http://hello.berth.app:8081',
    )
    const standard = { ...edge, httpPort: 80 }
    expect(createUrls({ baseUrl, nameservers, production: false, edge: standard }).deployment('hello')).toBe(
      'http://hello.berth.app',
    )
  })

  test('receive pushes beside the API', () => {
    const urls = createUrls({ baseUrl, nameservers, production: true, edge: { domain: 'berth.app', httpPort: 80 } })
    expect(urls.push('prj_1')).toBe('https://api.example.com/hooks/git/prj_1')
  })
})
