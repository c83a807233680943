// A worker that delivers, in a process of its own that can be killed: `node worker-process.ts <database url> <lease ms>`.
import { pino } from 'pino'
import { startDeliveries } from '../../../src/engines/delivery/deliveries.ts'
import { openDatabase } from '../../../src/platform/database/database.ts'
import { listen } from '../../../src/platform/database/notifications.ts'
import { createVault } from '../../../src/platform/secrets/secrets.ts'

const [url = '', leaseMs = ''] = process.argv.slice(2)
const log = pino({ level: 'silent' })
const notifications = await listen(url, log)
const config = { webhookAllowPrivate: true, dnsResolvers: [] }
const vault = createVault(Buffer.alloc(32, 7))
startDeliveries(
  { config, db: openDatabase(url, 4), notifications, vault, log },
  { leaseMs: Number(leaseMs), pollMs: 100 },
)
