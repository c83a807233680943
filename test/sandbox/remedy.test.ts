// The sentence that says what to add where sandboxes cannot be made.
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { deviceRemedy, remedyOf, type Surroundings } from '../../src/sandbox/remedy.ts'
import { cleanUp, directory } from './sandboxes.ts'

afterAll(cleanUp)

const proper = '24 23 0:22 / /proc rw,nosuid - proc proc rw\n'
const masked = `${proper}31 24 0:30 / /proc/kcore rw,nosuid - tmpfs tmpfs rw\n`

function surroundings(files: Record<string, string>, { root = false, names = true } = {}): Surroundings {
  return { root, read: async (path) => files[path] ?? '', canNameHost: async () => names }
}

const status = (capabilities: string, seccomp: number) => `CapEff:\t${capabilities}\nSeccomp:\t${seccomp}\n`
const none = '0000000000000000'

test('names the options of a container that are missing, all at once', async () => {
  const files = {
    '/proc/self/status': status(none, 2),
    '/proc/self/mountinfo': masked,
    '/proc/self/attr/current': 'docker-default (enforce)\n',
  }
  const remedy = await remedyOf(surroundings(files, { names: false }))
  expect(remedy).toContain('`seccomp=deploy/seccomp.json`, `apparmor=unconfined`, `systempaths=unconfined`')
})

test('names only what is missing, and nothing where nothing is known to be', async () => {
  const files = { '/proc/self/status': status(none, 2), '/proc/self/mountinfo': masked }
  expect(await remedyOf(surroundings(files))).toMatch(/^add `systempaths=unconfined` to /)
  expect(await remedyOf(surroundings({ ...files, '/proc/self/mountinfo': proper }))).toBe('')
  const unfiltered = { '/proc/self/status': status(none, 0), '/proc/self/mountinfo': proper }
  expect(await remedyOf(surroundings(unfiltered, { names: false }))).toBe('')
})

test('names the settings of the kernel first, which no option of a container changes', async () => {
  const files = { '/proc/self/status': status(none, 2), '/proc/self/mountinfo': masked }
  const remedy = (path: string, value: string, root = false) =>
    remedyOf(surroundings({ ...files, [path]: value }, { root, names: false }))
  expect(await remedy('/proc/sys/user/max_user_namespaces', '0\n')).toContain('user.max_user_namespaces=10000')
  expect(await remedy('/proc/sys/kernel/unprivileged_userns_clone', '0\n')).toContain('unprivileged_userns_clone=1')
  const restricted = '/proc/sys/kernel/apparmor_restrict_unprivileged_userns'
  expect(await remedy(restricted, '1\n')).toContain('apparmor_restrict_unprivileged_userns=0')
})

test('tells a root without rights to be another user', async () => {
  const as = (capabilities: string) =>
    remedyOf(surroundings({ '/proc/self/status': status(capabilities, 0) }, { root: true }))
  expect(await as(none)).toContain('user: node')
  expect(await as('000001ffffffffff')).toBe('')
})

test('names the device that a network needs, unless root makes it', async () => {
  const absent = join(await directory(), 'tun')
  expect(await deviceRemedy(false, absent)).toContain(absent)
  expect(await deviceRemedy(true, absent)).toBe('')
  expect(await deviceRemedy(false, '/dev/null')).toBe('')
})
