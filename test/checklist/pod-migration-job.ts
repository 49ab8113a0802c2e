import type { ProjectName } from '../reporter/results.ts'
import type { Feature, FeatureGroup } from './feature.ts'

const feature = (id: string, title: string, provenBy: ProjectName): Feature => ({ id, title, provenBy })

/** Features of the design. ADR 133 lists their limits. */
export const podMigrationJob: FeatureGroup = {
  name: 'PodMigrationJob',
  features: [
    feature('PJ01', 'the kind: all fields, enums, the status as a subresource, columns', 'apiserver'),
    feature('PJ02', 'eviction cost: default, negative, order; the highest one is never removed', 'apiserver'),
    feature('PJ03', 'nothing happens for a paused job', 'apiserver'),
    feature('PJ04', 'a job fails when its ttl is over, and its reservation is released', 'apiserver'),
    feature('PJ05', 'a job without a mode has ReservationFirst', 'apiserver'),
    feature('PJ06', 'EvictDirectly: the pod is removed, and the job succeeds', 'apiserver'),
    feature('PJ07', 'ReservationFirst: the pod goes only when its replacement is there', 'e2e'),
    feature('PJ08', 'the template of a reservation is merged with the workload', 'apiserver'),
    feature('PJ09', 'a Reservation that the job names is used, and none is created', 'apiserver'),
    feature(
      'PJ10',
      'the Reservation is written into the job, and a restart makes no second one',
      'apiserver',
    ),
    feature('PJ11', 'a reservation that fails leaves the pod alone', 'apiserver'),
    feature('PJ12', 'the status names the new pod and its node', 'e2e'),
    feature('PJ13', 'each condition and each reason of the design is reached', 'apiserver'),
    feature('PJ14', 'a job that its user aborts stops, and its reservation is released', 'apiserver'),
    feature('PJ15', 'the workload of a pod is its top owner', 'unit'),
    feature('PJ16', 'migrating pods of a workload stay below the threshold', 'unit'),
    feature('PJ17', 'unavailable pods: a disruption budget wins over the threshold', 'apiserver'),
    feature('PJ18', 'limits of nodes and namespaces', 'apiserver'),
    feature('PJ19', 'the order is total and deterministic, with six keys', 'unit'),
    feature('PJ20', 'all waiting jobs are judged together, and respect all budgets', 'apiserver'),
    feature('PJ21', 'switched off, jobs stay Pending and nothing is evicted', 'apiserver'),
    feature('PJ22', 'flow control limits how many begin', 'apiserver'),
    feature('PJ23', 'a dry run records its decision, and does nothing', 'apiserver'),
    feature('PJ24', 'each filter of the configuration, with both values', 'unit'),
    feature('PJ25', 'eviction policies, and options of deletions that jobs override', 'apiserver'),
    feature('PJ26', 'a pod gives way only to a replacement of its own, and its room is kept', 'e2e'),
    feature('PJ27', 'clients and kubectl create jobs, with the rights of the component', 'apiserver'),
    feature('PJ28', 'the configuration in a ConfigMap is read again', 'apiserver'),
    feature('PJ29', 'rollouts and changes of scale win over jobs', 'unit'),
    feature('PJ30', 'the history of the order survives a restart', 'apiserver'),
    feature('PJ31', 'options of deletions also hold for pods that give way', 'e2e'),
  ],
}
