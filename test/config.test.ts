import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { readConfig } from '../config.ts';

describe('settings', () => {
  it('that are misspelt are refused by name, and what is meant is said', () => {
    const cases = {
      LOG_PARTITION: 'LOG_PARTITIONS',
      KAFKA_BROKER: 'KAFKA_BROKERS',
      DATA_DIRS: 'DATA_DIR',
      log_levl: 'LOG_LEVEL',
    };
    for (const [given, meant] of Object.entries(cases))
      expect(() => readConfig({ [given]: '12' }), given).to.throw(
        `configuration: ${given}: is no setting; ${meant} is`,
      );
  });

  it('of others are none of ours, also where they look alike', () => {
    const others = { PATH: '/bin', HOSTNAME: 'a', KAFKA_HEAP_OPTS: '-Xmx1G', LOG_DIR: '/tmp', NODE_ENV: 'test' };
    expect(readConfig(others)).to.deep.equal(readConfig({}));
    expect(readConfig({ DATABASE_URL: 'postgres://a/b', DATABASE_URI: 'x' }).DATABASE_URL).to.equal('postgres://a/b');
  });

  it('of traces: what would do nothing is refused, and what is about other signals is none of ours', () => {
    const on = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' };
    const cases: [environment: Record<string, string>, why: string][] = [
      [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4317' }, 'OTEL_EXPORTER_OTLP_ENDPOINT: must be an http(s) URL'],
      [{ OTEL_TRACES_SAMPLER: 'always_on' }, 'OTEL_TRACES_SAMPLER: does nothing without OTEL_EXPORTER_OTLP_ENDPOINT'],
      [{ OTEL_EXPORTER_OTLP_HEADERS: 'a=b' }, 'OTEL_EXPORTER_OTLP_HEADERS: does nothing without'],
      [{ ...on, OTEL_EXPORTER_OTLP_HEADERS: 'bearer' }, 'OTEL_EXPORTER_OTLP_HEADERS: must be name=value'],
      [{ ...on, OTEL_EXPORTER_OTLP_HEADERS: 'a=b,c=%zz' }, 'OTEL_EXPORTER_OTLP_HEADERS: must be name=value'],
      [{ ...on, OTEL_TRACES_SAMPLER: 'sometimes' }, 'OTEL_TRACES_SAMPLER: '],
      [{ ...on, OTEL_TRACES_SAMPLER_ARG: '0.5' }, 'OTEL_TRACES_SAMPLER_ARG: is for an OTEL_TRACES_SAMPLER by ratio'],
      [{ ...on, OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '2' }, 'OTEL_TRACES_SAMPLER_ARG: '],
      [{ ...on, OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }, 'OTEL_EXPORTER_OTLP_PROTOCOL: is no setting: traces go as OTLP'],
      [{ ...on, OTEL_TRACES_EXPORTER: 'zipkin' }, 'OTEL_TRACES_EXPORTER: is no setting'],
    ];
    for (const [environment, why] of cases)
      expect(() => readConfig(environment), JSON.stringify(environment)).to.throw(`configuration: ${why}`);
    const others = {
      OTEL_METRICS_EXPORTER: 'none',
      OTEL_EXPORTER_OTLP_LOGS_ENDPOINT: 'http://logs:4318',
      OTEL_PROPAGATORS: '',
    };
    expect(readConfig({ ...on, ...others })).to.deep.equal(readConfig(on));
    expect(readConfig({ OTEL_PROPAGATORS: 'b3', OTEL_SERVICE_NAME: 'x' }).OTEL_SERVICE_NAME).to.equal('x');
  });

  it('that are no numbers where one is wanted', () => {
    const cases = {
      abc: 'must be a number, and is abc',
      '1.5': 'must be a whole number, and is 1.5',
      '1e': 'must be a number, and is 1e',
    };
    for (const [PORT, why] of Object.entries(cases))
      expect(() => readConfig({ PORT }), PORT).to.throw(new RegExp(`^configuration: PORT: ${why}$`));
  });

  it('that are refused are named, in words that are ours, whichever it is', () => {
    const cases = {
      METRICS: ['closed', 'must be public, internal or off'],
      SIGN_UP: ['yes', 'must be open or closed'],
      PORT: ['-1', 'must be at least 0'],
      LOG_PARTITIONS: ['5000', 'must be at most 4096'],
      WEBHOOK_RETRY_ALLOWED_EVENT_TYPES: [
        'invoice.finalised',
        'invoice.finalised is no system event (docs/rules/webhooks.md has them all)',
      ],
    };
    for (const [name, [given, why]] of Object.entries(cases))
      expect(() => readConfig({ [name]: given }), name).to.throw(`configuration: ${name}: ${why}`);
    const names = readFileSync(new URL('../.env.example', import.meta.url), 'utf8').matchAll(
      /^#? ?([A-Z][A-Z\d_]+)=/gm,
    );
    const said = [...names].flatMap(([, name]) =>
      [' ', 'never', '-1', '1.5', '9'.repeat(20)].flatMap((given) => refusal(name!, given)),
    );
    expect(said.length).to.be.greaterThan(100);
    expect(
      said.filter(({ name, why }) => !new RegExp(`^configuration: (?:[A-Z_]+ and )?${name}\\b`).test(why)),
    ).to.deep.equal([]);
    expect(said.filter(({ why }) => /invalid|expected|received|too (big|small)|[<>]=/i.test(why))).to.deep.equal([]);
  });

  it('that name a path below the home directory', () => {
    expect(readConfig({ DATA_DIR: '~/farthing' }).DATA_DIR).to.equal(join(homedir(), 'farthing'));
    expect(readConfig({ DATA_DIR: '/srv/~x' }).DATA_DIR).to.equal('/srv/~x');
    for (const setting of ['DATA_DIR', 'EXPORT_DIRECTORY', 'PDF_FONTS_DIR'])
      expect(() => readConfig({ [setting]: '~somebody/x' })).to.throw(
        `configuration: ${setting}: must be written in full: ~ alone is a home directory, your own`,
      );
  });
});

function refusal(name: string, given: string): { name: string; why: string }[] {
  try {
    readConfig({ [name]: given });
    return [];
  } catch (error) {
    return [{ name, why: (error as Error).message }];
  }
}
