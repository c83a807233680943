// What functions that run in the page use of it. The types of the DOM as a whole contradict those of Node.js.
// biome-ignore-start lint/suspicious/noExplicitAny: the page is not ours to type.
declare const document: any
declare const innerWidth: number
declare function addEventListener(type: string, listen: (event: any) => void): void
// biome-ignore-end lint/suspicious/noExplicitAny: see above.
