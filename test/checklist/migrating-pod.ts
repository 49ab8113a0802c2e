import type { ProjectName } from '../reporter/results.ts'
import type { Feature, FeatureGroup } from './feature.ts'

const feature = (id: string, title: string, provenBy: ProjectName): Feature => ({ id, title, provenBy })

/** The features of MigratingPods that a test proves; docs/migrating-pod.md names those that there are not. */
export const migratingPod: FeatureGroup = {
  name: 'MigratingPod',
  features: [
    feature(
      'MP-01',
      'it makes NAME-0 of its template, owned through its set, and tells where it runs',
      'apiserver',
    ),
    feature(
      'MP-02',
      'the deletion of its pod moves it: the memory continues in the next pod on another node',
      'e2e',
    ),
    feature('MP-03', 'kubectl drain of its node ends, and it continues elsewhere with its memory', 'e2e'),
    feature('MP-04', 'each state, Invalid included, which heals by itself', 'unit'),
    feature('MP-05', 'the number in the name is the lock against two targets', 'unit'),
    feature('MP-06', 'a pass that ends at any of its writes is completed by the next one', 'unit'),
    feature('MP-07', 'its deletion removes pod, set and slot', 'e2e'),
    feature('MP-08', 'kubectl get shows state, pod and node', 'apiserver'),
    feature('MP-09', 'images are pulled and containers run before the pod is stopped', 'e2e'),
    feature(
      'MP-10',
      'an agent gives memory to nodes of the slot only, and takes that of the pod of the slot only',
      'unit',
    ),
    feature('MP-11', 'containers with memory move together', 'e2e'),
    feature(
      'MP-12',
      'no second copy runs, and the kubelet restarts nothing before the other pod has the slot',
      'e2e',
    ),
    feature(
      'MP-13',
      'the Service follows from the source to the target, and only one of them answers',
      'e2e',
    ),
    feature('MP-14', 'a save leaves the pod running, and the last one of a move does not', 'e2e'),
    feature('MP-15', 'a restored container has the spec of its own pod', 'e2e'),
    feature('MP-16', 'a saved state that cannot be restored is kept, and restored once it can be', 'unit'),
    feature('MP-17', 'open connections are no obstacle to a move', 'e2e'),
    feature('MP-18', 'init containers run once, unless their work belongs to the place of the pod', 'e2e'),
    feature('MP-19', 'a pod whose init containers run ends at once, and the next one starts as usual', 'e2e'),
    feature(
      'MP-20',
      'ConfigMaps and Secrets are there after a move, and a ReadWriteOnce claim refuses it with a reason',
      'e2e',
    ),
    feature('MP-21', 'clients of each type of Service only see a gap', 'e2e'),
    feature('MP-22', 'a Migration that is called off leaves the pod running', 'e2e'),
    feature('MP-23', 'a move of which a step fails leaves the source running', 'e2e'),
    feature(
      'MP-24',
      'the transfer is direct, and a Migration that asks for a shared or claimed volume is refused with the reason',
      'apiserver',
    ),
    feature(
      'MP-25',
      'memory is copied while the pod runs, and a Migration that asks for post-copy is refused with the reason',
      'apiserver',
    ),
    feature(
      'MP-26',
      'connections end and are made again, and a Migration that asks to keep them is refused with the reason',
      'apiserver',
    ),
    feature('MP-27', 'files in the layer and in emptyDirs move', 'e2e'),
    feature(
      'MP-28',
      'a clone begins with the memory of its source, which runs on, and a ClonePod is collected after its end',
      'e2e',
    ),
    feature('MP-29', 'a Job whose pod moves survives a drain with its memory, and is complete', 'e2e'),
    feature(
      'MP-30',
      'one command measures moves of 13 sizes beside a Deployment, ten times each, and writes every value as CSV',
      'unit',
    ),
    feature(
      'MP-31',
      'evicted by the kubelet, it continues elsewhere, and says how old its memory was; preempted, it loses nothing',
      'e2e',
    ),
    feature(
      'MP-32',
      'a move longer than asked for is made if a restart is longer still; the prediction stands beside the measured time',
      'e2e',
    ),
    feature('MP-33', 'labels and annotations added to the pod are there after two moves', 'apiserver'),
    feature(
      'MP-34',
      'duration, bytes and errors of moves, dumps and restores are metrics, and equal to what the status says',
      'e2e',
    ),
    feature('MP-35', 'memory whose app ends before it answers is tried twice in a pod, then told', 'e2e'),
  ],
}
