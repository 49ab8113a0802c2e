{{/* Refuses, with a sentence, what the API server or the nodes would refuse later and less clearly. It makes no object. */}}
{{- if not .Values.images.registry }}
{{- fail "set images.registry: no public registry serves the images of Understudy. Build them (npm run image), push them to a registry of yours and name it, or load them into the nodes and set images.registry=understudy.invalid" }}
{{- end }}
{{- if or (eq .Release.Namespace "default") (hasPrefix "kube-" .Release.Namespace) }}
{{- fail (printf "install into a namespace of its own, not into %s: helm install understudy CHART --namespace understudy-system --create-namespace" .Release.Namespace) }}
{{- end }}
{{- if eq .Release.Namespace .Values.agents.namespace }}
{{- fail (printf "agents.namespace and the namespace of the release are both %s: the agents are privileged and need a namespace of their own" .Release.Namespace) }}
{{- end }}
{{- with .Values.podMigrationJobs }}
{{- if and (not .enabled) (or .reservations .preemptions .deletions) }}
{{- fail "podMigrationJobs.reservations, .preemptions and .deletions need podMigrationJobs.enabled=true" }}
{{- end }}
{{- if and .preemptions (not .reservations) }}
{{- fail "podMigrationJobs.preemptions needs podMigrationJobs.reservations=true" }}
{{- end }}
{{- end }}
{{- if and .Values.stateStore.redis .Values.stateStore.url }}
{{- fail "stateStore.redis and stateStore.url exclude each other: set only one of them" }}
{{- end }}
{{- if and .Values.stateStore.redis (not .Values.stateStore.passwordSecret) }}
{{- fail "stateStore.redis needs stateStore.passwordSecret: a Secret with the key `password`" }}
{{- end }}
