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
    feature(
      'MP-32',
      'a move longer than asked for is made if a restart is longer still; the prediction stands beside the measured time',
      'e2e',
    ),
    feature(
      'MP-34',
      'duration, bytes and errors of moves, dumps and restores are metrics, and equal to what the status says',
      'e2e',
    ),
    feature('MP-16', 'a saved state that cannot be restored is kept, and restored once it can be', 'unit'),
    feature('MP-18', 'init containers run once, unless their work belongs to the place of the pod', 'unit'),
    feature('MP-23', 'a move of which a step fails leaves the source running', 'unit'),
    feature('MP-33', 'labels and annotations added to the pod are there after two moves', 'apiserver'),
    feature(
      'MP-35',
      'memory whose app ends before it answers is tried twice in a pod, then told, and older memory is used',
      'e2e',
    ),
  ],
}
