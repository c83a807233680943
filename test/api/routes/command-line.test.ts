// /cli: the file that customers fetch, told from which server it comes.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { startApi } from '../../helpers/api.ts'

test('is handed out with the address of the server, and again only when it has changed', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'berth-cli-'))
  const file = join(directory, 'berth.mjs')
  const api = await startApi({ BASE_URL: 'https://berth.example.com' }, { commandLineFile: file })
  try {
    expect((await api.app.inject({ url: '/cli' })).statusCode).toBe(404)
    await writeFile(file, "#!/usr/bin/env node\nconst home = 'https://home.berth.invalid'\n")
    const answer = await api.app.inject({ url: '/cli' })
    expect(answer.body).toBe("#!/usr/bin/env node\nconst home = 'https://berth.example.com'\n")
    expect(answer.headers['content-type']).toMatch(/javascript/)
    const again = await api.app.inject({ url: '/cli', headers: { 'if-none-match': answer.headers.etag as string } })
    expect(again.statusCode).toBe(304)
  } finally {
    await api.stop()
    await rm(directory, { recursive: true, force: true })
  }
})
