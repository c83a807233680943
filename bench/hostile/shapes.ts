// The hostile shapes: for each surface of the platform, the same bytes in plain form and in many others.
import { apiBodies, json } from './api.ts'
import { dns, packets, zoneFiles } from './dns.ts'
import { http2Frames, tlsRecords } from './encrypted.ts'
import { archives, rules } from './files.ts'
import { requestBodies, requestHeads, requests, webSockets } from './requests.ts'
import { logs, responses } from './responses.ts'
import type { Surface } from './surface.ts'

export const surfaces: Record<string, Surface> = {
  'request bodies': requestBodies,
  'request heads': requestHeads,
  'requests on one connection': requests,
  'HTTP/2 frames': http2Frames,
  'TLS records': tlsRecords,
  'WebSocket frames': webSockets,
  "a server's responses": responses,
  "a server's log": logs,
  'bodies of API requests': apiBodies,
  JSON: json,
  'DNS messages over TCP': dns,
  'DNS messages over UDP': packets,
  'zone files': zoneFiles,
  'rules of sites': rules,
  archives,
}
