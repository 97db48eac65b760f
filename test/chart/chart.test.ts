/**
 * The Helm chart in ops/helm: accepted by helm, its manifests by the schemas of Kubernetes, its settings by config.ts. Needs `helm` and
 * `kubectl-validate`, which .ci/run installs with Go, so it is asked for by name.
 */
import { execFile, execFileSync, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { parseAllDocuments } from 'yaml';
import { readConfig } from '../../config.ts';
import { environmentWith, ROOT } from '../support/service.ts';

const CHART = join(ROOT, 'ops/helm/farthing');
/** The newest version whose schemas kubectl-validate carries. helm that Go built takes itself to be of an old one. */
const KUBERNETES = '1.30';
const { PATH, GOPATH, ...inherited } = environmentWith({});
const env = { ...inherited, PATH: `${PATH}:${join(GOPATH || join(homedir(), 'go'), 'bin')}` };
const helm = (...args: string[]) => execFileSync('helm', args, { env, encoding: 'utf8' });
const template = (...sets: string[]) =>
  helm('template', 'billing', CHART, '--kube-version', KUBERNETES, ...sets.flatMap((set) => ['--set', set]));

/** Renders an upgrade beside a StatefulSet, which a server answers as the API of Kubernetes does. */
async function upgradeBeside(live: { image: string; replicas: number; size: string }, ...args: string[]) {
  const spec = {
    template: { spec: { containers: [{ name: 'pipeline', image: live.image }] } },
    volumeClaimTemplates: [{ spec: { resources: { requests: { storage: live.size } } } }],
  };
  const kind = { apiVersion: 'apps/v1', kind: 'StatefulSet' };
  const resources = [{ name: 'statefulsets', singularName: '', namespaced: true, kind: 'StatefulSet', verbs: ['get'] }];
  const answers: Record<string, object> = {
    '/version': { major: '1', minor: '30', gitVersion: `v${KUBERNETES}.0` },
    '/api': { kind: 'APIVersions', versions: [] },
    '/apis': { kind: 'APIGroupList', apiVersion: 'v1', groups: [] },
    '/apis/apps/v1': { kind: 'APIResourceList', apiVersion: 'v1', groupVersion: 'apps/v1', resources },
    '/apis/apps/v1/namespaces/default/statefulsets/billing-pipeline': {
      ...kind,
      metadata: { name: 'billing-pipeline', namespace: 'default' },
      spec,
      status: { replicas: live.replicas },
    },
  };
  const server = createServer(({ url = '' }, response) => {
    const answer = answers[url.split('?')[0]!];
    response.writeHead(answer ? 200 : 404, { 'content-type': 'application/json' }).end(JSON.stringify(answer ?? {}));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const kubernetes = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const upgrade = [
    '--is-upgrade',
    '--dry-run=server',
    '--kube-version',
    KUBERNETES,
    '--namespace=default',
    `--kube-apiserver=${kubernetes}`,
  ];
  try {
    const { stdout } = await promisify(execFile)('helm', ['template', 'billing', CHART, ...upgrade, ...args], { env });
    return stdout;
  } catch (error) {
    return (error as { stderr: string }).stderr;
  } finally {
    server.close();
  }
}

type Container = {
  command: string[];
  envFrom: object[];
  volumeMounts: { name: string; mountPath: string }[];
  ports: { name: string; containerPort: number }[];
};
type Manifest = {
  kind: string;
  metadata: { name: string };
  data: Record<string, string>;
  spec: {
    template: { spec: { containers: Container[]; volumes: { name: string }[] } };
    volumeClaimTemplates?: object[];
  };
};

const ALL = [
  'ingress.enabled=true',
  'ingress.className=nginx',
  'ingress.tlsSecret=certificate',
  'exports.existingClaim=exports',
  'pipeline.storage.className=fast',
  'imagePullSecrets[0].name=registry',
  'nodeSelector.disk=ssd',
  'tolerations[0].key=billing',
  'extraVolumes[0].name=ca',
  'extraVolumes[0].configMap.name=private-ca',
  'extraVolumeMounts[0].name=ca',
  'extraVolumeMounts[0].mountPath=/ca',
];

describe('the Helm chart', function () {
  this.timeout(60_000);
  let folder: string;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'farthing-chart-'));
  });
  after(() => rmSync(folder, { recursive: true }));

  const read = (...sets: string[]) =>
    parseAllDocuments(template(...sets)).map((document) => document.toJS() as Manifest);
  const validate = (manifests: string) => {
    const file = join(folder, 'manifests.yaml');
    writeFileSync(file, manifests);
    return spawnSync('kubectl-validate', ['--version', KUBERNETES, file], { env, encoding: 'utf8' });
  };

  it('passes helm lint', () => {
    expect(helm('lint', '--strict', '--kube-version', KUBERNETES, CHART)).to.contain('0 chart(s) failed');
  });

  it('is the version of package.json', () => {
    const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
    const chart = readFileSync(join(CHART, 'Chart.yaml'), 'utf8');
    expect(/^appVersion: (.*)$/m.exec(chart)?.[1]).to.equal(version);
  });

  for (const [what, sets] of [['defaults', []] as const, ['everything switched on', ALL] as const]) {
    it(`makes manifests that the schemas of Kubernetes accept: ${what}`, () => {
      const manifests = template(...sets);
      const { status, stderr, stdout } = validate(manifests);
      expect(status, stderr + stdout).to.equal(0);
      // A misspelled field would be refused.
      expect(validate(manifests.replaceAll('terminationGracePeriodSeconds', 'terminationGrace')).status).to.not.equal(
        0,
      );
    });
  }

  describe('an upgrade', () => {
    const live = { image: 'farthing:0.1.0', replicas: 2, size: '20Gi' };
    const OVERLAP = /workers of two versions must not overlap: scale scheduler and pipeline to 0 first/;
    const RENDERED = /kind: StatefulSet/;
    for (const [what, beside, args, expected] of [
      ['of the version is refused beside old workers', live, ['--set=image.tag=0.2.0'], OVERLAP],
      ['of the version is made without workers', { ...live, replicas: 0 }, ['--set=image.tag=0.2.0'], RENDERED],
      ['of a setting is made beside workers', live, ['--set=settings.LOG_LEVEL=debug'], RENDERED],
      [
        'of the disks is refused',
        { ...live, replicas: 0 },
        ['--set=pipeline.storage.size=40Gi'],
        /pipeline\.storage\.size is 40Gi, but the StatefulSet has 20Gi/,
      ],
    ] as const) {
      it(what, async () => expect(await upgradeBeside(beside, ...args)).to.match(expected));
    }
  });

  it('refuses values that it does not know', () => {
    expect(() => template('api.replica=3')).to.throw(/replica/);
    expect(() => template('existingSecret=')).to.throw(/existingSecret/);
  });

  it('gives the processes settings that config.ts and .env.example know', () => {
    const settings = read(...ALL).find(({ kind }) => kind === 'ConfigMap')!.data;
    const example = readFileSync(join(ROOT, '.env.example'), 'utf8');
    expect(settings).to.include({ DATA_DIR: '/data', EXPORT_DIRECTORY: '/exports', SIGN_UP: 'closed' });
    for (const name of Object.keys(settings)) expect(example).to.match(new RegExp(`^(# )?${name}=`, 'm'));
    const config: Record<string, unknown> = readConfig(settings);
    for (const [name, value] of Object.entries(settings)) expect(String(config[name]), name).to.equal(value);
  });

  for (const [sets, proxies] of [
    [[], '0'],
    [['ingress.enabled=true'], '1'],
    [['settings.TRUSTED_PROXIES=2'], '2'],
  ] as const) {
    it(`trusts ${proxies} proxies with ${sets[0] ?? 'defaults'}`, () => {
      const settings = read(...sets).find(({ kind }) => kind === 'ConfigMap')!.data;
      expect(settings.TRUSTED_PROXIES).to.equal(proxies);
    });
  }

  it('mounts volumes of the operator into each process', () => {
    const processes = read(...ALL).filter(({ kind }) => kind === 'Deployment' || kind === 'StatefulSet');
    expect(processes).to.have.length(3);
    for (const { metadata, spec } of processes) {
      const { volumes, containers } = spec.template.spec;
      expect(volumes, metadata.name).to.deep.include({ name: 'ca', configMap: { name: 'private-ca' } });
      expect(containers[0]!.volumeMounts, metadata.name).to.deep.include({ name: 'ca', mountPath: '/ca' });
    }
  });

  it('starts each process as docker-compose.yml does, with the disk that it needs', () => {
    const compose = readFileSync(join(ROOT, 'docker-compose.yml'), 'utf8');
    const processes = read().filter(({ kind }) => kind === 'Deployment' || kind === 'StatefulSet');
    expect(processes.map(({ metadata }) => metadata.name)).to.have.members([
      'billing-api',
      'billing-pipeline',
      'billing-scheduler',
    ]);
    for (const { kind, metadata, spec } of processes) {
      const [{ command, envFrom, ports }] = spec.template.spec.containers as [Container];
      expect(existsSync(join(ROOT, command.at(-1)!)), metadata.name).to.equal(true);
      expect(compose).to.contain(`command: ${JSON.stringify(command).replaceAll(',', ', ')}`);
      expect(envFrom).to.have.length(2);
      expect(ports.map(({ containerPort }) => containerPort)).to.deep.equal([8080, 8081]);
      expect(spec.volumeClaimTemplates ?? [], metadata.name).to.have.length(kind === 'StatefulSet' ? 1 : 0);
    }
  });
});
