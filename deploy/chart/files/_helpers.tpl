{{/*
The reference of an image: (list root name). A digest counts more than a tag. Without both, it is the image that this chart was released with,
by digest; nodes that were given images of understudy.invalid have them by tag only.
*/}}
{{- define "understudy.image" -}}
{{- $root := index . 0 -}}
{{- $image := index $root.Values.images (index . 1) -}}
{{- $registry := trimSuffix "/" $root.Values.images.registry -}}
{{- $name := printf "%s/%s" $registry $image.repository -}}
{{- $released := index (default dict $root.Chart.Annotations) (printf "backup.example.com/digest-%s" (index . 1)) -}}
{{- if $image.digest -}}
{{ printf "%s@%s" $name $image.digest }}
{{- else if $image.tag -}}
{{ printf "%s:%s" $name $image.tag }}
{{- else if and $released (ne $registry "understudy.invalid") -}}
{{ printf "%s@%s" $name $released }}
{{- else -}}
{{ printf "%s:%s" $name $root.Chart.AppVersion }}
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
