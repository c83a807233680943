// Options of a sandbox that depend on this machine and installation.
export type SandboxOptions = {
  /** Directories in which bwrap, slirp4netns, nft, npm and other package managers are looked for, as in PATH. */
  searchPath: string
  /** User of commands on the host, if Berth itself is root. */
  user?: { uid: number; gid: number }
  /** For sockets; a short path that every user can traverse. */
  runDirectory?: string
  /** False: do not use them, as on machines where none can be made. */
  controlGroups?: boolean
  /** True: connections to servers always pass a forwarder in the sandbox, as on machines where it cannot be entered. */
  forwardConnections?: boolean
  /** For tests: how processes are tracked without bubblewrap; default: the best way that works here. */
  containment?: 'pid-namespace' | 'marker'
  /** Addresses of the platform besides those of this machine's interfaces; sandboxes cannot reach them. */
  ownAddresses?: string[]
  /** Upstream name servers for sandboxes, each `address[:port]`; empty: those of the system. */
  resolvers?: string[]
}
