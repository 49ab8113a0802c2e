import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { overlaps, planCluster, planGuest } from '../playground/plan.ts'
import { kinds } from './kinds.ts'
import { qemuArguments } from './qemu.ts'
import { checkRequirements } from './requirements.ts'
import { sources } from './root-disk.ts'
import { seedFiles } from './seed-files.ts'

const plan = planCluster('portability', 3, 2)
const kindNamed = (name: string) => {
  const kind = kinds.find(each => each.name === name)
  if (kind === undefined) throw new Error(`no kind ${name}`)
  return kind
}
const filesOf = (name: string): Record<string, string> =>
  seedFiles({
    plan,
    guest: planGuest(plan, name, 0),
    kind: kindNamed(name),
    pauseImage: 'understudy.invalid/pause:1',
  })

describe('the plan of a node beside those of the cluster', () => {
  it('has addresses of the cluster that no other machine has', () => {
    const largest = planCluster('portability', 3, 60)
    for (const number of [0, 1, 2]) {
      const guest = planGuest(plan, 'debian-13-containerd-2', number)
      expect(overlaps(guest.podCidr, plan.podCidr)).toBe(true)
      expect(guest.link.length).toBeLessThanOrEqual(15)
      for (const other of [...largest.nodes, largest.controlPlane]) {
        expect(other.address).not.toBe(guest.address)
        expect(other.mac).not.toBe(guest.mac)
      }
      for (const { podCidr } of largest.nodes) expect(overlaps(podCidr, guest.podCidr)).toBe(false)
    }
    expect(() => planGuest(plan, 'x', 3)).toThrow('guest 3')
  })
})

describe('the seed of a node', () => {
  it('has the settings of a usual node for the kubelet', () => {
    const kubelet: unknown = parse(filesOf('debian-13')['kubelet.yaml'] ?? '')
    expect(kubelet).toMatchObject({ cgroupDriver: 'systemd', cgroupRoot: '/', failCgroupV1: true })
  })

  it("leaves the package's containerd in place, or puts another program into its unit", () => {
    const [own = '', other = ''] = ['debian-13', 'debian-13-containerd-2'].map(
      name => filesOf(name)['start.sh'],
    )
    expect(own).not.toContain('containerd.service.d')
    expect(other).toContain('ExecStart=/opt/understudy/containerd/containerd')
    expect(filesOf('debian-13')['containerd.toml']).toMatch(/^version = 2\n/)
    expect(filesOf('debian-13-containerd-2')['containerd.toml']).toMatch(/^version = 3\n/)
  })

  it('routes to the pods of the other nodes', () => {
    for (const { podCidr, address } of plan.nodes)
      expect(filesOf('debian-12')['start.sh']).toContain(`ip route add ${podCidr} via ${address}\n`)
  })
})

describe('the virtual machine', () => {
  it('never writes to the disk of the cache', () => {
    const argv = qemuArguments({
      guest: planGuest(plan, 'debian-13', 0),
      root: { disk: '/c/disk.ext4', kernel: '/c/vmlinuz', initrd: '/c/initrd.img' },
      seed: '/s/seed.ext4',
      console: '/l/console.log',
    })
    const drives = argv.filter(word => word.startsWith('file=/'))
    expect(drives).toHaveLength(2)
    expect(drives.every(drive => /snapshot=on|readonly=on/.test(drive))).toBe(true)
    expect(argv).toContain('virtio-net-pci,netdev=net,mac=02:75:73:03:00:47')
  })
})

describe('the needs of this machine', () => {
  it('names all missing programs at once, and the packages to install', async () => {
    const has = async (program: string): Promise<boolean> => program === 'mke2fs'
    await expect(checkRequirements({ has })).rejects.toMatchObject({
      message: 'these programs are missing: mmdebstrap, qemu-system-x86_64, ssh, ssh-keygen',
      advice: 'apt-get install --no-install-recommends mmdebstrap qemu-system-x86 openssh-client',
    })
    await expect(checkRequirements({ has: async () => true })).resolves.toBeUndefined()
  })
})

describe('the archives of another release', () => {
  it("are those of this machine's apt", () => {
    const main = { uri: 'mirror:main', signedBy: '/k.gpg' }
    expect(sources({ main, security: { uri: 'mirror:security', signedBy: '/s.gpg' } }, 'trixie')).toEqual([
      'deb [signed-by=/k.gpg] mirror:main trixie main',
      'deb [signed-by=/k.gpg] mirror:main trixie-updates main',
      'deb [signed-by=/s.gpg] mirror:security trixie-security main',
    ])
  })
})
