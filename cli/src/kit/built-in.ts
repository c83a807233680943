// Values written into the bundle when it is built and when a server hands it out.
declare const BERTH_CLI_VERSION: string

export const version = typeof BERTH_CLI_VERSION === 'string' ? BERTH_CLI_VERSION : '0.0.0'

// A server that serves the file at /cli writes its own address here (src/api/routes/command-line.ts).
const served = 'https://home.berth.invalid'

/** The server that this file was downloaded from; null for the npm package. */
export const home = new URL(served).hostname.endsWith('.invalid') ? null : served
