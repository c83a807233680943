// A worker that sends mails, in a process of its own that can be killed.
import { pino } from 'pino'
import { loadConfig } from '../../../src/config.ts'
import { createMailHandlers } from '../../../src/engines/mail/handlers.ts'
import { startWorker } from '../../../src/jobs/worker.ts'
import { openDatabase } from '../../../src/platform/database/database.ts'
import { listen } from '../../../src/platform/database/notifications.ts'
import { createVault } from '../../../src/platform/secrets/secrets.ts'

const [databaseUrl, smtpUrl] = process.argv.slice(2) as [string, string]
const log = pino({ level: 'silent' })
const config = loadConfig({ SMTP_URL: smtpUrl, MAIL_FROM: 'Berth <berth@mail.example>' })
const db = openDatabase(databaseUrl, 5)
const vault = createVault(Buffer.alloc(32, 7))
startWorker(db, await listen(databaseUrl, log), log, createMailHandlers({ db, config, vault, log }))
