// The entry of the engine that runs server projects.
export { openServers } from './open.ts'
