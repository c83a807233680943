// Loads koffi, by which system calls are made that Node does not offer. It is optional: without it there is a slower way.

/** The part of koffi's API that is used; its own types may be missing. */
export type Koffi = {
  load(library: null): { func(declaration: string): (...args: unknown[]) => number }
  address(memory: Uint8Array): bigint
  errno(): number
}

/** Null if not supported: another system, another processor (struct layouts are those of 64-bit Linux), or no koffi. */
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
