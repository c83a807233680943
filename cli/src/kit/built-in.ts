// Values inserted when the bundle is built and when a server serves it.
declare const BERTH_CLI_VERSION: string

export const version = typeof BERTH_CLI_VERSION === 'string' ? BERTH_CLI_VERSION : '0.0.0'

// A server replaces this with its own URL when it serves the file at /cli (src/api/routes/command-line.ts).
const served = 'https://home.berth.invalid'

/** The server that this file was downloaded from; null for the npm package. */
export const home = new URL(served).hostname.endsWith('.invalid') ? null : served
