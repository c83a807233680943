// Loads koffi, for system calls that Node doesn't offer. It is optional: without it, callers use a slower method.

/** The part of koffi's API that we use; its own types may be missing. */
export type Koffi = {
  load(library: null): { func(declaration: string): (...args: unknown[]) => number }
  address(memory: Uint8Array): bigint
  errno(): number
}

/** Null if unsupported: not 64-bit Linux, whose struct layouts we rely on, or koffi isn't installed. */
export async function loadKoffi(): Promise<Koffi | null> {
  if (process.platform !== 'linux' || !['x64', 'arm64'].includes(process.arch)) return null
  const name = 'koffi'
  try {
    const { default: koffi } = (await import(name)) as { default: Koffi }
    return koffi
  } catch {
    return null
  }
}
