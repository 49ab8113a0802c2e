import type { ProjectName } from '../reporter/results.ts'
import type { Feature, FeatureGroup } from './features.ts'

const sentence = (id: string, title: string, provenBy: ProjectName): Feature => ({ id, title, provenBy })

/** What the design says of pods that hold memory, of the paths they take, of truth and of safety. */
export const design: readonly FeatureGroup[] = [
  {
    name: 'Pods',
    features: [
      sentence('D6.primary', 'a primary is the template as given, where its memory can be saved', 'unit'),
      sentence('D6.distance', 'understudies keep their distance to primaries', 'unit'),
      sentence(
        'D6.hot',
        'a hot backup is the same image with `hold` in place of the app, put there by an init container without rights',
        'unit',
      ),
      sentence('D6.image', 'an understudy of another image is refused', 'unit'),
      sentence('D6.cold', 'a cold backup reserves its place behind the gate: Init:0/1', 'e2e'),
      sentence(
        'D6.serving',
        'a pod is on stage when its condition says so, naming container and epoch',
        'unit',
      ),
      sentence('D6.understudy', 'being able to take over is a condition of its own', 'unit'),
      sentence('D6.probes', 'after a promotion the agent asks what the template’s probes ask', 'unit'),
      sentence('D6.hold-order', 'an order to `hold` counts once; started again it only holds', 'unit'),
      sentence('D6.hold-life', 'exit codes and signals of a promoted app are those of its pod', 'unit'),
      sentence('D6.restart-policy', 'a restartPolicy other than Always is refused', 'apiserver'),
      sentence(
        'D6.names',
        'names are <set>-<12 hex>; a create of unknown outcome is settled by the same name',
        'apiserver',
      ),
      sentence('D6.warm', 'mode Warm: none of this, exactly the pods of a set without memory', 'unit'),
    ],
  },
  {
    name: 'Paths',
    features: [
      sentence('D7.when', 'only what serves, is not on its way out and is kept elsewhere is saved', 'unit'),
      sentence('D7.stop', 'everybody of a container stops, forks and all, and goes on when told', 'unit'),
      sentence('D7.continue', 'whatever happens to the agent, the primary goes on', 'unit'),
      sentence(
        'D7.moment',
        'writable layer, emptyDirs, /dev/shm and all containers are of one moment',
        'unit',
      ),
      sentence('D7.measured', 'freeze and skew are measured', 'unit'),
      sentence('D7.void', 'a dump of a pod that was told to end is void', 'unit'),
      sentence('D7.budget', 'saved memory never exceeds its budget', 'unit'),
      sentence('D7.delta', 'only what has changed travels', 'unit'),
      sentence('D7.verified', 'what arrives is verified and whole, or it is not there', 'unit'),
      sentence('D7.broken', 'a transfer that breaks leaves nothing and begins again', 'unit'),
      sentence('D7.deadline', 'a dump past its deadline is given up, and the primary goes on', 'unit'),
      sentence('D7.deaths', 'deaths: an exit, another container, a deletion, no answer any more', 'unit'),
      sentence(
        'D7.grave',
        'from a death on every port of the pod is the heir’s; a restarted container is never heard',
        'unit',
      ),
      sentence('D7.readiness', 'a dead primary serves nobody, whatever its kubelet says', 'unit'),
      sentence(
        'D7.epoch',
        'a promotion is a swap of the slot’s Lease: nobody is promoted twice',
        'apiserver',
      ),
      sentence('D7.one-write', 'a failover is one write of the endpoints', 'apiserver'),
      sentence(
        'D7.loser',
        'the loser leaves when its successor is on stage, and is deleted after',
        'apiserver',
      ),
      sentence('D7.deleted', 'a deleted primary is stopped before its successor starts', 'unit'),
      sentence('D7.own-memory', 'each slot gets its own memory back, as a client reads it', 'e2e'),
      sentence('D7.agents', 'agents that die promote nobody and lose nothing', 'e2e'),
      sentence(
        'D7.wake-once',
        'the token wakes a pod once; whatever is not the request leaves its gate shut',
        'unit',
      ),
      sentence(
        'D7.wake-token',
        'the token is an HMAC over set and pod, and the pod holds only its digest',
        'unit',
      ),
      sentence('D7.wake-silent', 'a silent gate costs its pod, never the loop', 'e2e'),
    ],
  },
  {
    name: 'Truth',
    features: [
      sentence(
        'D9.lease',
        'each slot has a Lease with its primary, a life, an heir and the nodes that keep it',
        'apiserver',
      ),
      sentence(
        'D9.life',
        'a number that is used again begins another life and inherits nothing',
        'apiserver',
      ),
      sentence('D9.swept', 'what no set owns any more is removed', 'unit'),
      sentence('D9.crash', 'wherever the process ends, the next one finds whole generations only', 'unit'),
    ],
  },
  {
    name: 'Safety',
    features: [
      sentence('D10.private', 'a generation is private to root', 'unit'),
      sentence('D10.transit', 'agents talk TLS 1.3 with pinned keys, both sides checked', 'unit'),
      sentence('D10.hostile-peer', 'whatever a peer sends, it is refused or whole', 'unit'),
      sentence('D10.rights', 'memory with more rights than its understudy is not brought in', 'unit'),
      sentence('D10.files', 'links of a container lead nowhere', 'unit'),
      sentence('D10.peer-lease', 'who stands in no Lease of the slot reads nothing of it', 'unit'),
    ],
  },
]
