// Memory in use, without garbage that hasn't been collected yet.
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

export function memoryInUse(): NodeJS.MemoryUsage {
  collect()
  return process.memoryUsage()
}
