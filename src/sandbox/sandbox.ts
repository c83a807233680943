// Runs commands that nobody vouches for: picks the driver that really works on this machine.
import { openBubblewrap } from './bubblewrap.ts'
import { type Sandbox, SandboxError } from './command.ts'
import { openUnprotected } from './unprotected.ts'

export * from './command.ts'

export type SandboxOptions = {
  /** Directories in which bwrap, slirp4netns, nft, npm and other package managers are looked for, as in PATH. */
  searchPath: string
  /** Whom commands run as on the host, where Berth itself is root. */
  user?: { uid: number; gid: number }
  /** For sockets; short, and every user must be able to pass through it. */
  runDirectory?: string
  /** False does without them, as on machines where none can be made. */
  controlGroups?: boolean
  /** For tests: how processes are held together without bubblewrap, in place of the best way that works here. */
  containment?: 'pid-namespace' | 'marker'
  /** Addresses of the platform besides those of this machine's interfaces; sandboxes do not reach them. */
  ownAddresses?: string[]
  /** Name servers that sandboxes' questions go to, each `address[:port]`; none: those of the system. */
  resolvers?: string[]
}

/** `auto` takes bubblewrap if a command runs in it here and now; otherwise none, with the cause as a warning. */
export async function createSandbox(mode: 'auto' | 'bubblewrap' | 'none', options: SandboxOptions): Promise<Sandbox> {
  if (mode === 'none') return openUnprotected(options, 'BUILD_SANDBOX is none.')
  try {
    return await openBubblewrap(options)
  } catch (error) {
    if (mode === 'bubblewrap') throw error
    if (!(error instanceof SandboxError)) throw error
    return openUnprotected(options, error.message)
  }
}
