Understudy {{ .Chart.AppVersion }} is in the namespace {{ .Release.Namespace }}{{ if .Values.agents.enabled }}, its agents in {{ .Values.agents.namespace }}{{ end }}.

  kubectl -n {{ .Release.Namespace }} rollout status deployment/understudy-operator
{{- if .Values.agents.enabled }}
  kubectl get nodereports    # which nodes can move memory
{{- end }}
{{- if and .Values.agents.enabled (eq .Values.memory.namespaces "labelled") }}

Sets keep memory only in namespaces that an administrator has labelled:

  kubectl label namespace YOUR-NAMESPACE backup.example.com/memory=allowed
{{- end }}

Before `helm uninstall`, delete all sets (kubectl delete mpod,bps --all --all-namespaces). The kinds stay, until you delete them.
