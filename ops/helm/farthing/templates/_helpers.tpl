{{- define "farthing.selector" -}}
app.kubernetes.io/name: farthing
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .name }}
{{- end }}

{{- define "farthing.labels" -}}
{{ include "farthing.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
{{- end }}

{{- define "farthing.image" -}}
{{ printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) }}
{{- end }}

{{/*
Refuses an upgrade that would fail or do harm: the new APIs migrate the stores, so no old worker may run. Kubernetes refuses another size of
the disks. Without access to the cluster (helm template) there is no check.
*/}}
{{- define "farthing.checkUpgrade" -}}
{{- $set := lookup "apps/v1" "StatefulSet" .Release.Namespace (printf "%s-pipeline" .Release.Name) }}
{{- if and .Release.IsUpgrade $set }}
{{- $image := (first $set.spec.template.spec.containers).image }}
{{- if and (gt (int (dig "status" "replicas" 0 $set)) 0) (ne $image (include "farthing.image" .)) }}
{{- fail "workers of two versions must not overlap: scale scheduler and pipeline to 0 first (docs/production.md, Kubernetes)" }}
{{- end }}
{{- $size := (first $set.spec.volumeClaimTemplates).spec.resources.requests.storage }}
{{- if ne $size .Values.pipeline.storage.size }}
{{- fail (printf "pipeline.storage.size is %s, but the StatefulSet has %s: see docs/production.md, Kubernetes" .Values.pipeline.storage.size $size) }}
{{- end }}
{{- end }}
{{- end }}

{{/* The pod of a process; takes its name, values, command and volumes. */}}
{{- define "farthing.pod" -}}
{{- $root := .root -}}
metadata:
  labels:
    {{- include "farthing.labels" . | nindent 4 }}
  annotations:
    checksum/settings: {{ include (print $root.Template.BasePath "/settings.yaml") $root | sha256sum }}
    prometheus.io/scrape: "true"
    prometheus.io/port: "8081"
spec:
  {{- with $root.Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  terminationGracePeriodSeconds: 40
  securityContext:
    runAsNonRoot: true
    runAsUser: 1000
    runAsGroup: 1000
    fsGroup: 1000
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile: { type: RuntimeDefault }
  containers:
    - name: {{ .name }}
      image: {{ include "farthing.image" $root | quote }}
      imagePullPolicy: {{ $root.Values.image.pullPolicy }}
      command: {{ toJson .command }}
      ports:
        - { name: http, containerPort: 8080 }
        - { name: internal, containerPort: 8081 }
      envFrom:
        - configMapRef: { name: {{ $root.Release.Name }}-settings }
        - secretRef: { name: {{ $root.Values.existingSecret }} }
      # A start waits up to a minute for the stores, and migrates them.
      startupProbe:
        httpGet: { path: /health, port: http }
        periodSeconds: 5
        failureThreshold: 60
      livenessProbe:
        httpGet: { path: /health, port: http }
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      readinessProbe:
        httpGet: { path: /ready, port: http }
        periodSeconds: 5
        timeoutSeconds: 5
        failureThreshold: 2
      # A process that is told to stop finishes its requests; before that the Service must stop sending some.
      lifecycle:
        preStop: { exec: { command: ["sleep", "5"] } }
      resources:
        {{- toYaml .values.resources | nindent 8 }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities: { drop: ["ALL"] }
      volumeMounts:
        - { name: data, mountPath: /data }
        - { name: tmp, mountPath: /tmp }
        {{- if and .exports $root.Values.exports.existingClaim }}
        - { name: exports, mountPath: /exports }
        {{- end }}
        {{- with $root.Values.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  volumes:
    - name: tmp
      emptyDir: {}
    {{- if not .persistent }}
    - name: data
      emptyDir: {}
    {{- end }}
    {{- if and .exports $root.Values.exports.existingClaim }}
    - name: exports
      persistentVolumeClaim: { claimName: {{ $root.Values.exports.existingClaim }} }
    {{- end }}
    {{- with $root.Values.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  # Spread over nodes, so that the loss of one leaves another.
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "farthing.selector" . | nindent 10 }}
  {{- with $root.Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $root.Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
