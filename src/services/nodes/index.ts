// Door of the nodes of the installation.
export { createLoadMeter, type Load, type LoadMeter } from './load.ts'
export { startNode } from './node.ts'
export {
  allNodes,
  changeNode,
  drainNodes,
  findNode,
  forgetLostNodes,
  listNodes,
  type NodeView,
  versionOfNode,
} from './nodes.ts'
export { countNodes } from './statements.ts'
