{{- define "timer.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "timer.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- $name := include "timer.name" . -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "timer.selector" -}}
app.kubernetes.io/name: {{ include "timer.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "timer.labels" -}}
{{ include "timer.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | quote }}
{{- end -}}

{{- define "timer.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end -}}
{{- end -}}

{{/* What cannot be right is refused before anything is installed. */}}
{{- define "timer.check" -}}
{{- if not .Values.image.repository -}}
{{- fail "image.repository is required: ghcr.io/OWNER/REPOSITORY for the image of a release, or where you pushed your own." -}}
{{- end -}}
{{- if not .Values.existingSecret -}}
{{- fail "existingSecret is required: the name of a Secret with API_KEY and, for a database server, DATABASE_URL." -}}
{{- end -}}
{{- if eq .Values.store "sqlite" -}}
{{- if or (gt (int .Values.replicas) 1) .Values.autoscaling.enabled -}}
{{- fail "SQLite has one process: set replicas to 1 and autoscaling.enabled to false, or store to postgres, mysql, mongodb, cassandra or dynamodb." -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* RATE_LIMIT for rateLimit. */}}
{{- define "timer.variable" -}}
{{- regexReplaceAll "([A-Z])" . "_${1}" | upper -}}
{{- end -}}

{{- define "timer.environment" -}}
- name: PORT
  value: '8080'
- name: NODE_NAME
  valueFrom:
    fieldRef:
      fieldPath: metadata.name
{{- if eq .Values.store "sqlite" }}
- name: DATABASE_URL
  value: sqlite:///var/lib/timer/timer.db
{{- end }}
{{- if .Values.namespacesSecret }}
- name: NAMESPACES_FILE
  value: /etc/timer/namespaces.json
{{- end }}
{{- range $name, $value := .Values.config }}
- name: {{ include "timer.variable" $name }}
  {{- /* Helm reads whole numbers as floating-point ones, and would write a million as 1e+06. */}}
  {{- if and (kindIs "float64" $value) (eq (float64 (int64 $value)) $value) }}
  value: {{ int64 $value | toString | quote }}
  {{- else }}
  value: {{ toString $value | quote }}
  {{- end }}
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "timer.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "timer.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{/* The pod of the service, the same for both kinds of workload. */}}
{{- define "timer.pod" -}}
metadata:
  labels:
    {{- include "timer.labels" . | nindent 4 }}
    {{- with .Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with .Values.podAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  serviceAccountName: {{ include "timer.fullname" . }}
  automountServiceAccountToken: false
  # A graceful shutdown waits up to 30 s for calls that are under way.
  terminationGracePeriodSeconds: 45
  securityContext:
    {{- include "timer.podSecurity" . | nindent 4 }}
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  containers:
    - name: timer
      image: {{ include "timer.image" . }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args: [serve]
      ports:
        - name: http
          containerPort: 8080
      envFrom:
        - secretRef:
            name: {{ .Values.existingSecret }}
      env:
        {{- include "timer.environment" . | nindent 8 }}
      # A database that is away must not restart every pod: it lives as long as it answers at all.
      livenessProbe:
        httpGet:
          path: {{ .Values.config.basePath }}/ping
          port: http
        periodSeconds: 10
        failureThreshold: 6
      readinessProbe:
        httpGet:
          path: {{ .Values.config.basePath }}/healthz
          port: http
        periodSeconds: 5
        timeoutSeconds: 6
        failureThreshold: 2
      startupProbe:
        httpGet:
          path: {{ .Values.config.basePath }}/ping
          port: http
        periodSeconds: 2
        failureThreshold: 90
      resources:
        {{- toYaml .Values.resources | nindent 8 }}
      securityContext:
        {{- include "timer.containerSecurity" . | nindent 8 }}
      volumeMounts:
        - name: data
          mountPath: /var/lib/timer
        {{- if .Values.namespacesSecret }}
        - name: namespaces
          mountPath: /etc/timer
          readOnly: true
        {{- end }}
  volumes:
    {{- if ne .Values.store "sqlite" }}
    - name: data
      emptyDir: {}
    {{- end }}
    {{- if .Values.namespacesSecret }}
    - name: namespaces
      secret:
        secretName: {{ .Values.namespacesSecret }}
    {{- end }}
  {{- if ne .Values.store "sqlite" }}
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "timer.selector" . | nindent 10 }}
  {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}
