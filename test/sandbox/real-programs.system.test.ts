// Large programs under the filter of system calls, and without what /proc would tell them of the host.
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, expect } from 'vitest'
import { bubblewrap, bubblewrapTest, cleanUp, directory, limits, run } from './sandboxes.ts'

afterAll(cleanUp)

const isInstalled = (program: string) => {
  try {
    return execFileSync('which', [program]).length > 0
  } catch {
    return false
  }
}

// Without Debian's script around it, which reads /etc.
const chromium = '/usr/lib/chromium/chromium'

const roomy = { ...limits, memoryMb: 2048, processes: 512, timeoutMs: 120_000 }

bubblewrapTest(
  'Go starts children and ends them, and finds interfaces and listeners',
  async ({ skip }) => {
    skip(!isInstalled('go'), 'Go is not installed')
    const workTree = await directory()
    const program = `package main
import ("fmt"; "net"; "os/exec"; "runtime"; "time"; "context")
func main() {
  out, err := exec.Command("echo", "child").Output()
  fmt.Println(string(out), err)
  limit, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
  defer cancel()
  fmt.Println(exec.CommandContext(limit, "sleep", "60").Run())
  interfaces, err := net.Interfaces()
  fmt.Println(len(interfaces), err)
  listener, err := net.Listen("tcp", "127.0.0.1:0")
  fmt.Println(listener != nil, err, runtime.NumCPU() > 0)
}`
    await writeFile(join(workTree, 'main.go'), program)
    const environment = { GOFLAGS: '-mod=mod', GOCACHE: '/tmp/go', GO111MODULE: 'off' }
    const { stdout, stderr } = await run(await bubblewrap(), 'go run main.go', { workTree, environment, limits: roomy })
    expect({ stdout, stderr }).toEqual({
      stdout: 'child\n <nil>\nsignal: killed\n1 <nil>\ntrue <nil> true\n',
      stderr: '',
    })
  },
  150_000,
)

bubblewrapTest(
  'Chromium renders a page that its script has changed',
  async ({ skip }) => {
    skip(!existsSync(chromium), 'Chromium is not installed')
    const workTree = await directory()
    await writeFile(
      join(workTree, 'page.html'),
      '<p>1</p><script>document.querySelector("p").textContent = 6 * 7</script>',
    )
    const arguments_ = ['--headless', '--no-sandbox', '--disable-gpu', '--user-data-dir=/tmp/profile', '--dump-dom']
    const { stdout, stderr, code } = await run(
      await bubblewrap(),
      [chromium, ...arguments_, 'file:///build/page.html'],
      {
        workTree,
        limits: roomy,
      },
    )
    expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toContain('<p>42</p>')
  },
  150_000,
)
