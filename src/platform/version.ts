// The version of this program, from package.json.
import manifest from '../../package.json' with { type: 'json' }

export const version: string = manifest.version
