// Public entry point of the installation's nodes.
export { createLoadMeter, type Load, type LoadMeter } from './load.ts'
export { startNode } from './node.ts'
export {
  changeNode,
  deleteLostNodes,
  drainNodes,
  findNode,
  listAllNodes,
  listNodes,
  type NodeView,
  versionOfNode,
} from './nodes.ts'
export { countNodes } from './statements.ts'
