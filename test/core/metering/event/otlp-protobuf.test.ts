// docs/rules/opentelemetry.md.
import { JsonMetricsSerializer, ProtobufMetricsSerializer } from '@opentelemetry/otlp-transformer';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { MeterProvider, MetricReader } from '@opentelemetry/sdk-metrics';
import { expect } from 'chai';
import fc from 'fast-check';
import { FarthingError } from '../../../../core/foundation/error.ts';
import { fromOtlpMetrics, OtlpMetrics } from '../../../../core/metering/event/otlp-metrics.ts';
import { parseOtlpProtobuf } from '../../../../core/metering/event/otlp-protobuf.ts';

class Reader extends MetricReader {
  protected override async onForceFlush() {}
  protected override async onShutdown() {}
}

async function collect() {
  const reader = new Reader();
  const resource = resourceFromAttributes({ 'service.name': 'größe', 'process.args': ['a', 'b'] });
  const provider = new MeterProvider({ readers: [reader], resource });
  const meter = provider.getMeter('lib', '1.2');
  const own = { external_customer_id: 'acme', ratio: 0.25, attempts: 3, isTest: false };
  meter.createCounter('calls').add(7, own);
  meter.createCounter('credits').add(0.1, own);
  meter.createHistogram('sizes').record(2.5, own);
  meter.createUpDownCounter('level').add(-5, own);
  const { resourceMetrics } = await reader.collect();
  await provider.shutdown();
  return resourceMetrics;
}

const usageOf = (request: unknown) => {
  const { events, faults } = fromOtlpMetrics(OtlpMetrics.parse(request));
  return { events: events.map(({ identity: _, ...event }) => event), faults };
};

describe('a metrics request in protobuf', () => {
  it('has the events, series and faults of the same request in JSON', async () => {
    const metrics = await collect();
    const json = JSON.parse(new TextDecoder().decode(JsonMetricsSerializer.serializeRequest(metrics)));
    const read = usageOf(parseOtlpProtobuf(ProtobufMetricsSerializer.serializeRequest(metrics)!));
    expect(read).to.deep.equal(usageOf(json));
    expect(read.events.map(({ value, count }) => [value, count])).to.deep.equal([
      ['7', null],
      ['0.1', null],
      ['2.5', '1'],
    ]);
    expect(read.faults).to.have.length(1);
  });

  it('is read, or refused by name, whatever its bytes are', async () => {
    const whole = ProtobufMetricsSerializer.serializeRequest(await collect())!;
    fc.assert(
      fc.property(fc.nat(whole.length - 1), fc.nat(255), fc.nat(whole.length), (at, byte, length) => {
        const bytes = Uint8Array.from(whole).subarray(0, length);
        if (at < length) bytes[at] = byte;
        try {
          parseOtlpProtobuf(bytes);
        } catch (error) {
          expect(error).to.be.instanceOf(FarthingError);
        }
      }),
    );
  });

  it('is refused if it is nested deep, or has a million messages', () => {
    let nested: number[] = [];
    for (let level = 0; level < 200; level++) {
      const head = nested.length < 128 ? [nested.length] : [(nested.length & 0x7f) | 0x80, nested.length >> 7];
      nested = level % 2 === 0 ? [0x0a, ...head, ...nested] : [0x2a, ...head, ...nested];
    }
    const wrapped = (field: number, bytes: number[]) => [
      field * 8 + 2,
      (bytes.length & 0x7f) | 0x80,
      bytes.length >> 7,
      ...bytes,
    ];
    const deep = wrapped(1, wrapped(1, wrapped(1, wrapped(2, nested))));
    expect(() => parseOtlpProtobuf(Uint8Array.from(deep))).to.throw(/nested deeper than 64 levels/);
    expect(() => parseOtlpProtobuf(new Uint8Array(2_100_000).map((_, at) => (at % 2 === 0 ? 0x0a : 0)))).to.throw(
      /more than 1000000 messages/,
    );
  });
});
