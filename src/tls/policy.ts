// The protocol versions and cipher suites of our servers: Mozilla's intermediate list.
// https://wiki.mozilla.org/Security/Server_Side_TLS

// Node's own order. OpenSSL has no other TLS 1.3 suites that browsers support.
const suites13 = ['TLS_AES_256_GCM_SHA384', 'TLS_CHACHA20_POLY1305_SHA256', 'TLS_AES_128_GCM_SHA256']

// All have forward secrecy and authenticated encryption; none uses CBC, whose padding has leaked (LUCKY13). The list's
// three DHE suites are left out: every client that supports them supports ECDHE too.
const suites12 = [
  'ECDHE-ECDSA-AES128-GCM-SHA256',
  'ECDHE-RSA-AES128-GCM-SHA256',
  'ECDHE-ECDSA-AES256-GCM-SHA384',
  'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-CHACHA20-POLY1305',
  'ECDHE-RSA-CHACHA20-POLY1305',
]

/** For every server and every context: after SNI, the context's suites apply. */
export const tlsPolicy = {
  /** Every client still in use supports it. */
  minVersion: 'TLSv1.2',
  ciphers: [...suites13, ...suites12].join(':'),
} as const

/** A client that takes longer only holds the connection open. */
export const handshakeTimeoutMs = 10_000
