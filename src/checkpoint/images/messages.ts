/**
 * The messages of CRIU that are read or edited here, with CRIU's own names and numbers, and only the fields that
 * matter: unknown ones survive an edit untouched. `messages.test.ts` compares them with CRIU's program.
 */
import { many, message, one } from './message.ts'

/** Numbers that stand for shared kernel objects: two tasks with the same number share the object. */
export const taskKobjIds = message('task_kobj_ids_entry', {
  vmId: one(1, 'uint32'),
  filesId: one(2, 'uint32'),
  fsId: one(3, 'uint32'),
  sighandId: one(4, 'uint32'),
  pidNsId: one(5, 'uint32'),
  netNsId: one(6, 'uint32'),
  ipcNsId: one(7, 'uint32'),
  utsNsId: one(8, 'uint32'),
  mntNsId: one(9, 'uint32'),
  userNsId: one(10, 'uint32'),
  cgroupNsId: one(11, 'uint32'),
  timeNsId: one(12, 'uint32'),
})

export const inventoryEntry = message('inventory_entry', {
  imgVersion: one(1, 'uint32'),
  fdinfoPerId: one(2, 'bool'),
  /** The namespaces of CRIU itself at the dump. */
  rootIds: one(3, taskKobjIds),
  nsPerId: one(4, 'bool'),
})

export const pstreeEntry = message('pstree_entry', {
  pid: one(1, 'uint32'),
  ppid: one(2, 'uint32'),
  pgid: one(3, 'uint32'),
  sid: one(4, 'uint32'),
  threads: many(5, 'uint32'),
})

/** Capability sets are 32-bit words, the low one first. */
export const credsEntry = message('creds_entry', {
  uid: one(1, 'uint32'),
  gid: one(2, 'uint32'),
  euid: one(3, 'uint32'),
  egid: one(4, 'uint32'),
  suid: one(5, 'uint32'),
  sgid: one(6, 'uint32'),
  fsuid: one(7, 'uint32'),
  fsgid: one(8, 'uint32'),
  capInh: many(9, 'uint32'),
  capPrm: many(10, 'uint32'),
  capEff: many(11, 'uint32'),
  capBnd: many(12, 'uint32'),
  secbits: one(13, 'uint32'),
  groups: many(14, 'uint32'),
  lsmProfile: one(15, 'bytes'),
  lsmSockcreate: one(16, 'bytes'),
  noNewPrivs: one(18, 'uint32'),
  capAmb: many(19, 'uint32'),
})

export const rlimitEntry = message('rlimit_entry', { cur: one(1, 'uint64'), max: one(2, 'uint64') })

export const threadCoreEntry = message('thread_core_entry', {
  schedNice: one(3, 'sint32'),
  schedPolicy: one(4, 'uint32'),
  /** The signal that the kernel sends to the task when its parent ends; 0: none. */
  pdeathSig: one(8, 'uint32'),
  creds: one(10, credsEntry),
  seccompMode: one(11, 'uint32'),
  /** Index into the filters of seccomp.img. */
  seccompFilter: one(12, 'uint32'),
})

export const taskCoreEntry = message('task_core_entry', {
  taskState: one(1, 'uint32'),
  /** Indexed by resource number (RLIMIT_*). CRIU has no entry for a task without any. */
  rlimits: one(8, message('task_rlimits_entry', { rlimits: many(1, rlimitEntry) })),
  oldSeccompMode: one(11, 'uint32'),
  oomScoreAdj: one(14, 'int32'),
})

export const coreEntry = message('core_entry', {
  tc: one(3, taskCoreEntry),
  ids: one(4, taskKobjIds),
  threadCore: one(5, threadCoreEntry),
})

/** The stack pointer of a thread. */
export const stackEntry = message('core_entry', {
  threadInfo: one(
    2,
    message('thread_info_x86', { gpregs: one(2, message('user_x86_regs_entry', { sp: one(20, 'uint64') })) }),
  ),
})

const seccompFilter = message('seccomp_filter', { flags: one(3, 'uint32') })

export const seccompEntry = message('seccomp_entry', { seccompFilters: many(1, seccompFilter) })

export const mmEntry = message('mm_entry', {
  mmSavedAuxv: many(13, 'uint64'),
  vmas: many(
    14,
    message('vma_entry', { start: one(1, 'uint64'), end: one(2, 'uint64'), pgoff: one(3, 'uint64') }),
  ),
  dumpable: one(15, 'int32'),
  /** Contexts of asynchronous input and output. */
  aios: many(16, 'bytes'),
})

export const timerfdEntry = message('timerfd_entry', {
  id: one(1, 'uint32'),
  flags: one(2, 'uint32'),
  fown: one(3, 'bytes'),
  clockid: one(4, 'uint32'),
  ticks: one(5, 'uint64'),
  settimeFlags: one(6, 'uint32'),
  vsec: one(7, 'uint64'),
  vnsec: one(8, 'uint64'),
  isec: one(9, 'uint64'),
  insec: one(10, 'uint64'),
})

/** Addresses are the words of memory in network order: one for IPv4, four for IPv6. */
export const inetSocketEntry = message('inet_sk_entry', {
  id: one(1, 'uint32'),
  ino: one(2, 'uint32'),
  family: one(3, 'uint32'),
  type: one(4, 'uint32'),
  proto: one(5, 'uint32'),
  state: one(6, 'uint32'),
  srcPort: one(7, 'uint32'),
  dstPort: one(8, 'uint32'),
  flags: one(9, 'uint32'),
  backlog: one(10, 'uint32'),
  srcAddr: many(11, 'uint32'),
  v6only: one(15, 'bool'),
  ifname: one(17, 'bytes'),
})

export const fileEntry = message('file_entry', {
  type: one(1, 'uint32'),
  id: one(2, 'uint32'),
  isk: one(4, inetSocketEntry),
  tfd: one(12, timerfdEntry),
})

/** Open files as far as a restore opens something by a name. */
export const openedFileEntry = message('file_entry', {
  type: one(1, 'uint32'),
  reg: one(3, message('reg_file_entry', { flags: one(2, 'uint32'), name: one(6, 'bytes') })),
  isk: one(4, message('inet_sk_entry', { type: one(4, 'uint32') })),
  usk: one(16, message('unix_sk_entry', { name: one(11, 'bytes'), nameDir: one(14, 'bytes') })),
})

const scmEntry = message('scm_entry', { type: one(1, 'uint32'), rights: many(2, 'uint32') })

/** A packet that waits in a socket. Its content follows the entry. */
export const packetEntry = message('sk_packet_entry', {
  idFor: one(1, 'uint32'),
  length: one(2, 'uint32'),
  scm: many(4, scmEntry),
})

/** `pagesId` names the file with the pages: `pages-<pagesId>.img`. */
export const pagemapHead = message('pagemap_head', { pagesId: one(1, 'uint32') })

export const pagemapEntry = message('pagemap_entry', {
  vaddr: one(1, 'uint64'),
  compatNrPages: one(2, 'uint32'),
  inParent: one(3, 'bool'),
  flags: one(4, 'uint32'),
  nrPages: one(5, 'uint64'),
})

/** An open file that has been unlinked. Its content follows the entry. */
export const ghostFileEntry = message('ghost_file_entry', {
  uid: one(1, 'uint32'),
  gid: one(2, 'uint32'),
  mode: one(3, 'uint32'),
})

/** Times in microseconds. */
export const dumpStatsEntry = message('dump_stats_entry', {
  freezingTime: one(1, 'uint32'),
  frozenTime: one(2, 'uint32'),
  memdumpTime: one(3, 'uint32'),
  memwriteTime: one(4, 'uint32'),
  pagesScanned: one(5, 'uint64'),
  pagesSkippedParent: one(6, 'uint64'),
  pagesWritten: one(7, 'uint64'),
  shpagesWritten: one(14, 'uint64'),
})

/** Times in microseconds. */
export const restoreStatsEntry = message('restore_stats_entry', {
  pagesCompared: one(1, 'uint64'),
  pagesSkippedCow: one(2, 'uint64'),
  forkingTime: one(3, 'uint32'),
  restoreTime: one(4, 'uint32'),
  pagesRestored: one(5, 'uint64'),
})

export const statsEntry = message('stats_entry', {
  dump: one(1, dumpStatsEntry),
  restore: one(2, restoreStatsEntry),
})
