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
      image: {{ printf "%s:%s" $root.Values.image.repository ($root.Values.image.tag | default $root.Chart.AppVersion) | quote }}
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
