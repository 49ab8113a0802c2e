{{/* The reference of an image: (list root name). A digest counts more than a tag. */}}
{{- define "understudy.image" -}}
{{- $root := index . 0 -}}
{{- $image := index $root.Values.images (index . 1) -}}
{{- $name := printf "%s/%s" (trimSuffix "/" $root.Values.images.registry) $image.repository -}}
{{- if $image.digest -}}
{{ printf "%s@%s" $name $image.digest }}
{{- else -}}
{{ printf "%s:%s" $name (default $root.Chart.AppVersion $image.tag) }}
{{- end -}}
{{- end -}}

{{/* The field imagePullSecrets of a pod, or nothing. */}}
{{- define "understudy.pullSecrets" -}}
{{- with .Values.images.pullSecrets -}}
imagePullSecrets:
{{- range . }}
  - name: {{ . | quote }}
{{- end }}
{{- end -}}
{{- end -}}
