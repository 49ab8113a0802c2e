import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { criuBundle } from '../../../native/criu-bundle.ts'
import { type Fields, type MessageType, message, one } from './message.ts'
import * as messages from './messages.ts'
import { fileKinds } from './reach.ts'
import { type Descriptions, descriptionsIn } from './testing/criu-descriptors.ts'

const linux = process.platform === 'linux'

describe.skipIf(!linux)(`messages of the locked CRIU ${linux ? '' : '(needs Linux)'}`, () => {
  let criu: Descriptions

  beforeAll(async () => {
    const { directory } = await criuBundle()
    criu = descriptionsIn(await readFile(join(directory, 'criu')))
  }, 300_000)

  test('names, numbers and types of all fields are those of CRIU', () => {
    const all = withNested(Object.values(messages))
    expect(all.length).toBeGreaterThan(20)
    expect(all.flatMap(type => differences(type, criu))).toEqual([])
  })

  test.each([
    ['another name', { softLimit: one(1, 'uint64') }, '1: softLimit instead of cur'],
    ['another number', { cur: one(2, 'uint64') }, '2: cur instead of max'],
    ['another type', { cur: one(1, 'sint32') }, 'cur: sint32 instead of uint64'],
    ['no such field', { cur: one(9, 'uint64') }, '9: cur instead of no field'],
  ])('a description with %s is found', (_, fields, difference) => {
    expect(differences(message('rlimit_entry', fields), criu)).toEqual([`rlimit_entry ${difference}`])
  })

  /**
   * A field that a later CRIU adds may carry memory, names or rights that no check here knows. Decide whether a check has
   * to read it, and then add it here.
   */
  test('no field is new to the checks on images', () => {
    const unread = {
      core_entry: 'mtype ti_arm ti_aarch64 ti_ppc64 ti_s390 ti_mips ti_loongarch64 ti_riscv64',
      creds_entry: 'apparmor_data',
      dump_stats_entry:
        'irmap_resolve pages_lazy page_pipes page_pipe_bufs shpages_scanned shpages_skipped_parent',
      file_entry: 'nsf psk nlsk efd epfd sgfd tunf ify ffy ext fifo pipe tty memfd bpf pidfd',
      ghost_file_entry: 'dev ino rdev atim mtim chunks size symlnk_target',
      inet_sk_entry: 'dst_addr fown opts ip_opts ns_id shutdown tcp_opts',
      inventory_entry:
        'root_cg_set lsmtype dump_uptime pre_dump_mode tcp_close network_lock_method plugins_entry ' +
        'dump_criu_run_id allow_uprobes',
      mm_entry:
        'mm_start_code mm_end_code mm_start_data mm_end_data mm_start_stack mm_start_brk mm_brk mm_arg_start ' +
        'mm_arg_end mm_env_start mm_env_end exe_file_id thp_disabled',
      reg_file_entry: 'id pos fown mnt_id size ext mode build_id checksum checksum_config checksum_parameter',
      seccomp_filter: 'filter prev',
      task_core_entry:
        'exit_code personality flags blk_sigset comm timers cg_set signals_s old_seccomp_filter loginuid ' +
        'sigactions child_subreaper blk_sigset_extended stop_signo membarrier_registration_mask',
      thread_core_entry:
        'futex_rla futex_rla_len sched_prio blk_sigset sas signals_p comm blk_sigset_extended rseq_entry cg_set',
      thread_info_x86: 'clear_tid_addr fpregs tls',
      unix_sk_entry:
        'id ino type state flags uflags backlog peer fown opts shutdown file_perms deleted ns_id mnt_id',
      user_x86_regs_entry:
        'r15 r14 r13 r12 bp bx r11 r10 r9 r8 ax cx dx si di orig_ax ip cs flags ss fs_base gs_base ds es fs gs mode',
      vma_entry: 'shmid prot flags status fd madv fdflags',
    }
    const described = Map.groupBy(withNested(Object.values(messages)), ({ name }) => name)
    const found = [...described].map(([name, ours]) => {
      const numbers = new Set(ours.flatMap(({ fields }) => Object.values(fields).map(it => it.number)))
      const rest = (criu.messages.get(name) ?? []).filter(({ number }) => !numbers.has(number))
      return [name, rest.map(it => it.name).join(' ')] as const
    })
    expect(Object.fromEntries(found.filter(([, names]) => names !== ''))).toEqual(unread)
  })

  test('the kinds of open files have the numbers of CRIU', () => {
    // Kinds without a name appear as numbers.
    expect(
      [...(criu.enums.get('fd_types') ?? [])].map(([number, name]) => `${name} ${fileKinds[number]}`),
    ).toEqual([
      ...[
        'UND none',
        'REG regular',
        'PIPE pipe',
        'FIFO fifo',
        'INETSK inet',
        'UNIXSK unix',
        'EVENTFD eventfd',
      ],
      ...['EVENTPOLL eventpoll', 'INOTIFY inotify', 'SIGNALFD signalfd', 'PACKETSK packet', 'TTY tty'],
      ...['FANOTIFY fanotify', 'NETLINKSK netlink', 'NS namespace', 'TUNF tun', 'EXT external'],
      ...['TIMERFD timerfd', 'MEMFD memfd', 'BPFMAP bpf', 'PIDFD pidfd'],
      ...['CTL_TTY undefined', 'AUTOFS_PIPE undefined'],
    ])
  })
})

function withNested(types: readonly MessageType<Fields>[]): readonly MessageType<Fields>[] {
  const nested = types.flatMap(({ fields }) =>
    Object.values(fields).flatMap(({ type }) => (typeof type === 'string' ? [] : [type])),
  )
  return nested.length === 0 ? types : [...types, ...withNested(nested)]
}

function differences({ name, fields }: MessageType<Fields>, { messages: of }: Descriptions): string[] {
  const description = of.get(name)
  if (description === undefined) return [`CRIU has no ${name}`]
  return Object.entries(fields).flatMap(([own, { number, type, repeated }]) => {
    const theirs = description.find(it => it.number === number)
    if (theirs?.name !== snakeCase(own))
      return [`${name} ${number}: ${own} instead of ${theirs?.name ?? 'no field'}`]
    const wanted = `${theirs.repeated ? 'repeated ' : ''}${theirs.type}`
    const plain = typeof type === 'string' ? type : type.name
    const same =
      repeated === theirs.repeated &&
      (plain === theirs.type ||
        // The encodings are the same.
        (plain === 'uint32' && theirs.kind === 'enum') ||
        (plain === 'bytes' && (theirs.type === 'string' || theirs.kind === 'message')))
    return same ? [] : [`${name} ${own}: ${repeated ? 'repeated ' : ''}${plain} instead of ${wanted}`]
  })
}

const snakeCase = (name: string): string => name.replace(/[A-Z]/g, letter => `_${letter.toLowerCase()}`)
