// Calls the API of an installation under test like a customer.

/** Resolves with the response; throws if the request is refused. */
export type Call = <T>(method: string, path: string, body?: object) => Promise<T>

export function createCaller(port: number, token: string): Call {
  return async (method, path, body) => {
    const response = await fetch(`http://127.0.0.1:${port}/api${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, ...(body && { 'content-type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) }),
    })
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`)
    return (await response.json()) as never
  }
}
