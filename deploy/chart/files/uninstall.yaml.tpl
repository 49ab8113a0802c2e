{{- /*
`helm uninstall` waits for this Job before it deletes anything: agents can sweep their nodes only while they run. The account has no
right that the Job does not use. The verb `override` is what the policy understudy-marks asks of everyone who writes to NodeReports.
*/}}
{{- if .Values.uninstall.sweep }}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: understudy-uninstall
  namespace: {{ .Release.Namespace | quote }}
  labels:
    app.kubernetes.io/name: understudy
    app.kubernetes.io/part-of: understudy
    app.kubernetes.io/component: uninstall
  annotations:
    helm.sh/hook: pre-delete
    helm.sh/hook-weight: "-1"
    helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded,hook-failed
automountServiceAccountToken: false
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: understudy-uninstall
  labels:
    app.kubernetes.io/name: understudy
    app.kubernetes.io/part-of: understudy
    app.kubernetes.io/component: uninstall
  annotations:
    helm.sh/hook: pre-delete
    helm.sh/hook-weight: "-1"
    helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded,hook-failed
rules:
  - apiGroups: [backup.example.com]
    resources: [backuppodsets]
    verbs: [list, override]
  - apiGroups: [backup.example.com]
    resources: [nodereports]
    verbs: [list, patch]
  - apiGroups: [""]
    resources: [nodes]
    verbs: [list]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: understudy-uninstall
  labels:
    app.kubernetes.io/name: understudy
    app.kubernetes.io/part-of: understudy
    app.kubernetes.io/component: uninstall
  annotations:
    helm.sh/hook: pre-delete
    helm.sh/hook-weight: "-1"
    helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded,hook-failed
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: understudy-uninstall
subjects:
  - kind: ServiceAccount
    name: understudy-uninstall
    namespace: {{ .Release.Namespace | quote }}
---
apiVersion: batch/v1
kind: Job
metadata:
  name: understudy-uninstall
  namespace: {{ .Release.Namespace | quote }}
  labels:
    app.kubernetes.io/name: understudy
    app.kubernetes.io/part-of: understudy
    app.kubernetes.io/component: uninstall
  annotations:
    helm.sh/hook: pre-delete
    helm.sh/hook-weight: "0"
    # A Job that failed stays: its log says what is left on which node. Helm prints that log, too.
    helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
    helm.sh/hook-output-log-policy: hook-failed
spec:
  # A refusal does not become another answer by repetition. `helm uninstall` may be repeated at any time.
  backoffLimit: 0
  activeDeadlineSeconds: {{ add (int .Values.uninstall.timeoutSeconds) 60 }}
  template:
    metadata:
      labels:
        app.kubernetes.io/name: understudy
        app.kubernetes.io/part-of: understudy
        app.kubernetes.io/component: uninstall
    spec:
      serviceAccountName: understudy-uninstall
      automountServiceAccountToken: true
      enableServiceLinks: false
      restartPolicy: Never
      priorityClassName: understudy-operator
      {{- include "understudy.pullSecrets" . | nindent 6 }}
      securityContext:
        runAsNonRoot: true
        runAsUser: 65532
        runAsGroup: 65532
        seccompProfile:
          type: RuntimeDefault
      {{- with .Values.operator.nodeSelector }}
      nodeSelector: {{- toYaml . | nindent 8 }}
      {{- end }}
      containers:
        - name: uninstall
          image: {{ include "understudy.image" (list . "operator") }}
          imagePullPolicy: {{ .Values.images.pullPolicy }}
          args:
            - uninstall
            - --timeout={{ int .Values.uninstall.timeoutSeconds }}s
          terminationMessagePolicy: FallbackToLogsOnError
          resources:
            requests:
              cpu: 10m
              memory: 64Mi
            limits:
              memory: 256Mi
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities:
              drop:
                - ALL
{{- end }}
