#!/usr/bin/env bash
# A copy of both stores of docker-compose.yml, of one moment: docs/operations.md, "Backup and restore", says why.
#
#   ops/back-up.sh <directory> [days that copies are kept]
#
# Workers and schedulers stand still while the copy is made, and are started again however it ends. The APIs go on.
set -euo pipefail
cd "$(dirname "$0")/.."
into=${1:?usage: ops/back-up.sh <directory> [days]}
days=${2:-14}
name=farthing-$(date -u +%Y-%m-%dT%H%M%SZ)
part=$into/$name.part

mkdir -p "$part"
trap 'docker compose start pipeline scheduler' EXIT
docker compose stop pipeline scheduler

docker compose exec -T postgres pg_dump --username farthing --format custom farthing >"$part/postgres.dump"
# Into the directory that the server's own configuration allows for backups, below its data.
docker compose exec -T clickhouse sh -c \
  'clickhouse-client --user "$CLICKHOUSE_USER" --password "$CLICKHOUSE_PASSWORD" --query "BACKUP DATABASE farthing TO File('"'$name.tar'"')"'
docker compose cp "clickhouse:/var/lib/clickhouse/backups/$name.tar" "$part/clickhouse.tar"
docker compose exec -T clickhouse rm "/var/lib/clickhouse/backups/$name.tar"

# Only a whole copy has its name, and only after it older ones are taken away.
mv "$part" "$into/$name"
find "$into" -maxdepth 1 -type d -name 'farthing-*' -mtime "+$days" -exec rm -r {} +
echo "$into/$name"
