// A seccomp filter (classic BPF) with the system calls that sandboxed commands must not make.

type Numbers = { x64: number | null; arm64: number | null }

const calls = (rows: Record<string, [x64: number | null, arm64: number | null]>): Record<string, Numbers> =>
  Object.fromEntries(Object.entries(rows).map(([name, [x64, arm64]]) => [name, { x64, arm64 }]))

/**
 * Fail with ENOSYS, as on kernels that lack them, so that programs fall back: the C library then uses clone, whose flags
 * a filter can see, while clone3's are in memory. No filter sees calls made through an io_uring.
 */
export const ABSENT = calls({
  io_uring_setup: [425, 425],
  io_uring_enter: [426, 426],
  io_uring_register: [427, 427],
  clone3: [435, 435],
  // Process handles, without which Go and others fall back to process ids.
  pidfd_open: [434, 434],
  pidfd_getfd: [438, 438],
  // Optional in kernels. 16-bit segments have caused several kernel exploits.
  modify_ldt: [154, null],
})

/**
 * Fail with EPERM. Most need a capability that no sandboxed command has, but refusing them earlier avoids kernel code
 * where bugs are found every year. adjtimex is missing because without privileges it only reads the clock.
 */
export const REFUSED = calls({
  // Namespaces and mounts.
  unshare: [272, 97],
  setns: [308, 268],
  mount: [165, 40],
  umount2: [166, 39],
  pivot_root: [155, 41],
  chroot: [161, 51],
  open_tree: [428, 428],
  move_mount: [429, 429],
  fsopen: [430, 430],
  fsconfig: [431, 431],
  fsmount: [432, 432],
  fspick: [433, 433],
  mount_setattr: [442, 442],
  // Since Linux 6.15, newer than most headers. New calls have the same number on all architectures.
  open_tree_attr: [467, 467],
  // BPF programs, perf events, and userfaultfd, which helps win races in the kernel.
  bpf: [321, 280],
  perf_event_open: [298, 241],
  userfaultfd: [323, 282],
  fanotify_init: [300, 262],
  // Reading and controlling other processes, which debuggers need but builds don't.
  ptrace: [101, 117],
  process_vm_readv: [310, 270],
  process_vm_writev: [311, 271],
  kcmp: [312, 272],
  // Keyrings belong to a host user, not to a sandbox.
  add_key: [248, 217],
  request_key: [249, 218],
  keyctl: [250, 219],
  // Opening files by inode number, which bypasses directory permissions.
  open_by_handle_at: [304, 265],
  name_to_handle_at: [303, 264],
  lookup_dcookie: [212, 18],
  // Administration of the machine.
  init_module: [175, 105],
  finit_module: [313, 273],
  delete_module: [176, 106],
  create_module: [174, null],
  kexec_load: [246, 104],
  kexec_file_load: [320, 294],
  reboot: [169, 142],
  swapon: [167, 224],
  swapoff: [168, 225],
  acct: [163, 89],
  quotactl: [179, 60],
  quotactl_fd: [443, 443],
  syslog: [103, 116],
  nfsservctl: [180, 42],
  iopl: [172, null],
  ioperm: [173, null],
  settimeofday: [164, 170],
  clock_settime: [227, 112],
  sethostname: [170, 161],
  setdomainname: [171, 162],
  vhangup: [153, 58],
  uselib: [134, null],
  sysfs: [139, null],
})

/**
 * Fail with EOPNOTSUPP, so that the C library writes zeros instead: fallocate can allocate gigabytes before the disk
 * watch notices that a build exceeds its limit.
 */
export const UNSUPPORTED = calls({ fallocate: [285, 47] })

/** Allowed with some arguments. All of these are 32 bits wide, and the kernel ignores the upper half. */
export const CHECKED = calls({ clone: [56, 220], ioctl: [16, 29], socket: [41, 198], personality: [135, 92] })

// CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET.
const NEW_NAMESPACES = 0x7e02_0000
// TIOCSTI and TIOCLINUX inject characters into a terminal's input, which the shell outside would run.
const TERMINAL_INPUT = [0x5412, 0x541c]
// Unix, IPv4 and IPv6; netlink is checked below. AF_VSOCK reaches a virtual machine's host from every network
// namespace, and AF_ALG and rare protocols load kernel modules.
const SOCKET_FAMILIES = [1, 2, 10]
// Of netlink, only routes, which getifaddrs reads. Others, such as XFRM and netfilter, configure the kernel, and their
// bugs have given root on the host to processes that were only root in their own namespace.
const [NETLINK, NETLINK_ROUTE] = [16, 0]
// Linux, PER_LINUX32, UNAME26, both, and the query. Others turn off memory protection.
const PERSONALITIES = [0, 8, 0x2_0000, 0x2_0008, 0xffff_ffff]

const AUDIT_ARCHITECTURE = { x64: 0xc000_003e, arm64: 0xc000_00b7 }
/** From this number on, x86-64 calls are those of the x32 ABI. */
const X32 = 0x4000_0000
const ERRNO = { EPERM: 1, ENOSYS: 38, EPROTONOSUPPORT: 93, EOPNOTSUPP: 95, EAFNOSUPPORT: 97 }
const ALLOW = 0x7fff_0000
const KILL_PROCESS = 0x8000_0000

// struct seccomp_data: number, architecture, instruction pointer, six arguments of 8 bytes, low half first.
const NUMBER = 0
const ARCHITECTURE = 4
const argument = (index: number) => 16 + 8 * index

type Instruction = { code: number; yes: number; no: number; k: number }
const load = (offset: number): Instruction => ({ code: 0x20, yes: 0, no: 0, k: offset })
const answer = (value: number): Instruction => ({ code: 0x06, yes: 0, no: 0, k: value })
const refuse = (errno: keyof typeof ERRNO) => answer(0x0005_0000 | ERRNO[errno])
/** Runs the block only if the test is true. */
const when = (code: number, k: number, block: Instruction[]): Instruction[] => [
  { code, yes: 0, no: block.length, k },
  ...block,
]
const EQUAL = 0x15
const AT_LEAST = 0x35
const ANY_BIT = 0x45

/**
 * Null for unsupported architectures. Programs of another architecture are killed by SIGSYS, which shows the cause: if
 * every call of a 32-bit program failed, even exit, it would crash at random. x32 numbers fail with ENOSYS, as on
 * kernels without x32.
 */
export function seccompFilter(arch: string = process.arch): Buffer | null {
  if (arch !== 'x64' && arch !== 'arm64') return null
  const call = (numbers: Numbers, block: Instruction[]) => {
    const number = numbers[arch]
    return number === null ? [] : when(EQUAL, number, block)
  }
  return assemble([
    load(ARCHITECTURE),
    { code: EQUAL, yes: 1, no: 0, k: AUDIT_ARCHITECTURE[arch] },
    answer(KILL_PROCESS),
    load(NUMBER),
    ...(arch === 'x64' ? when(AT_LEAST, X32, [refuse('ENOSYS')]) : []),
    ...Object.values(ABSENT).flatMap((numbers) => call(numbers, [refuse('ENOSYS')])),
    ...Object.values(REFUSED).flatMap((numbers) => call(numbers, [refuse('EPERM')])),
    ...Object.values(UNSUPPORTED).flatMap((numbers) => call(numbers, [refuse('EOPNOTSUPP')])),
    ...call(CHECKED.clone!, [load(argument(0)), ...when(ANY_BIT, NEW_NAMESPACES, [refuse('EPERM')]), answer(ALLOW)]),
    ...call(CHECKED.ioctl!, [
      load(argument(1)),
      ...TERMINAL_INPUT.flatMap((request) => when(EQUAL, request, [refuse('EPERM')])),
      answer(ALLOW),
    ]),
    ...call(CHECKED.socket!, [
      load(argument(0)),
      ...SOCKET_FAMILIES.flatMap((family) => when(EQUAL, family, [answer(ALLOW)])),
      ...when(EQUAL, NETLINK, [
        load(argument(2)),
        ...when(EQUAL, NETLINK_ROUTE, [answer(ALLOW)]),
        refuse('EPROTONOSUPPORT'),
      ]),
      refuse('EAFNOSUPPORT'),
    ]),
    ...call(CHECKED.personality!, [
      load(argument(0)),
      ...PERSONALITIES.flatMap((persona) => when(EQUAL, persona, [answer(ALLOW)])),
      refuse('EPERM'),
    ]),
    answer(ALLOW),
  ])
}

/** struct sock_filter, in the byte order of both architectures. */
function assemble(program: Instruction[]): Buffer {
  const bytes = Buffer.alloc(program.length * 8)
  for (const [index, { code, yes, no, k }] of program.entries()) {
    bytes.writeUInt16LE(code, index * 8)
    bytes.writeUInt8(yes, index * 8 + 2)
    bytes.writeUInt8(no, index * 8 + 3)
    bytes.writeUInt32LE(k, index * 8 + 4)
  }
  return bytes
}
