// Public entry point of takedowns of hosts and projects.
export { endMootTakedowns } from './ending.ts'
export { isTakenDown } from './names.ts'
export { findNotice, readTakenDownHosts } from './standing.ts'
export { checkTakedown, createTakedown, endTakedown, getTakedown, listTakedowns } from './takedowns.ts'
