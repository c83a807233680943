// Options of a sandbox that depend on this machine and installation.
export type SandboxOptions = {
  /** Where to find bwrap, slirp4netns, nft, npm and other package managers, in the form of PATH. */
  searchPath: string
  /** Host user of commands if Berth runs as root. */
  user?: { uid: number; gid: number }
  /** For sockets: a short path that every user can traverse. */
  runDirectory?: string
  /** False disables control groups, as on machines that don't support them. */
  controlGroups?: boolean
  /** True makes connections to servers pass a forwarder, as on machines where sandboxes can't be entered. */
  forwardConnections?: boolean
  /** For tests: how to track processes without bubblewrap. Default: the best method that works here. */
  containment?: 'pid-namespace' | 'marker'
  /** The platform's further addresses, which sandboxes can't reach, besides this machine's interfaces. */
  ownAddresses?: string[]
  /** Upstream name servers, each `address[:port]`. If empty, the system's. */
  resolvers?: string[]
}
