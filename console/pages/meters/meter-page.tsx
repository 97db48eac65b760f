/** A meter: its usage by day, the prices that use it, and its definition. */
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { type ReactNode, useState } from 'react';
import { Bars } from '../../charts/bars.tsx';
import { api } from '../../client/client.ts';
import { useMayNot } from '../../client/permission.ts';
import { invalidate, useGet } from '../../client/queries.ts';
import { Button } from '../../components/button.tsx';
import { Chip } from '../../components/chip.tsx';
import { Choice } from '../../components/choice.tsx';
import { Confirm } from '../../components/confirm.tsx';
import { CopyId } from '../../components/copy.tsx';
import { type Fact, Facts, PageHead, Section, Sheet } from '../../components/page.tsx';
import { RecordTools } from '../../components/record-tools.tsx';
import { SideSheet, WithSheet } from '../../components/side-sheet.tsx';
import { Loaded } from '../../components/states.tsx';
import { formatCount, formatDay } from '../../figures/format.ts';
import { Quantity } from '../../figures/money.tsx';
import { useLanguage, useTexts } from '../../texts/texts.ts';
import { Definition } from './definition.tsx';
import { FiltersSheet } from './filters-sheet.tsx';
import { fillDays, findRange } from './meter-draft.ts';
import { MeterPrices } from './meter-prices.tsx';
import { buildMeterUsageQuery, type MeterRecord } from './meter-queries.ts';
import { METER_TEXTS } from './meter-texts.ts';
import styles from './meters.module.css';
import { METER_DAYS, type MeterSearch } from './routes.ts';

const FROM = '/env/$environment_id/meters/$meter_id';
const DEFAULT_DAYS = '30';

export function MeterPage(): ReactNode {
  const { meter_id } = useParams({ from: FROM });
  const meter = useGet('/meters/{id}', { path: { id: meter_id } });
  return (
    <Loaded query={meter} record_id={meter_id} rows={8}>
      {(record) => <MeterView meter={record} />}
    </Loaded>
  );
}

function MeterView({ meter }: { meter: MeterRecord }): ReactNode {
  const texts = useTexts(METER_TEXTS);
  const { sheet } = useSearch({ from: FROM });
  const navigate = useNavigate({ from: FROM });
  const queries = useQueryClient();
  const [isDisabling, setDisabling] = useState(false);
  const openSheet = (next?: MeterSearch['sheet']) =>
    void navigate({ search: (old) => ({ ...old, sheet: next }), resetScroll: false });
  const close = () => openSheet();
  const blocked = useMayNot('meter:write');
  const isLive = meter.status === 'published';
  const side = {
    filters: <FiltersSheet meter={meter} onClose={close} />,
    record: (
      <SideSheet title={texts.record} subtitle={<CopyId id={meter.id} />} onClose={close}>
        <RecordTools record={meter} path={`/meters/${meter.id}`} entity_id={meter.id} />
      </SideSheet>
    ),
  };
  return (
    <WithSheet sheet={sheet && side[sheet]}>
      <PageHead
        title={meter.name}
        status={
          !isLive ? (
            <Chip>{texts.archived}</Chip>
          ) : meter.state === 'backfilling' ? (
            <Chip tone="info">
              {texts.backfilling(String(meter.backfill.days_done), String(meter.backfill.days ?? '–'))}
            </Chip>
          ) : null
        }
        subtitle={
          <>
            <Definition aggregation={meter.aggregation} /> · <span className="mono">{meter.event_name}</span>
          </>
        }
        actions={
          <>
            <Button onClick={() => openSheet('record')}>{texts.record}</Button>
            {isLive && (
              <>
                <Button blocked={blocked} onClick={() => openSheet('filters')}>
                  {texts.editFilters}
                </Button>
                <Button isDangerous blocked={blocked} onClick={() => setDisabling(true)}>
                  {texts.disable}
                </Button>
              </>
            )}
          </>
        }
      />
      <MeterUsage meter={meter} />
      <MeterPrices meter_id={meter.id} />
      <Section title={texts.facts}>
        <Sheet>
          <Facts facts={listFacts(meter, texts)} />
        </Sheet>
      </Section>
      {isDisabling && (
        <Confirm
          needs="meter:write"
          title={texts.disableTitle(meter.name)}
          action={texts.disableNow}
          typed={meter.name}
          isDangerous
          onClose={() => setDisabling(false)}
          onConfirm={async () => {
            await api.POST('/meters/{id}/disable', { params: { path: { id: meter.id } } });
            await invalidate(queries, '/meters');
          }}
        >
          <p>{texts.disableHint}</p>
        </Confirm>
      )}
    </WithSheet>
  );
}

function listFacts(meter: MeterRecord, texts: (typeof METER_TEXTS)['en']): Fact[] {
  const { aggregation, filters } = meter;
  return [
    { label: texts.id, value: <CopyId id={meter.id} /> },
    { label: texts.counts, value: texts.sentence(aggregation.type) },
    ...(aggregation.bucket_size ? [{ label: texts.buckets, value: texts.bucket(aggregation.bucket_size) }] : []),
    ...(aggregation.group_by ? [{ label: texts.groupBy, value: <code>{aggregation.group_by}</code> }] : []),
    {
      label: texts.filters,
      value:
        filters.length === 0
          ? texts.noFilters
          : filters.map(({ key, values }) => (
              <div key={key}>
                <code>{key}</code> {texts.isOneOf} <code>{values.join(', ')}</code>
              </div>
            )),
    },
    { label: texts.reset, value: meter.reset_usage === 'NEVER' ? texts.resetNever : texts.resetPeriod },
  ];
}

function MeterUsage({ meter }: { meter: MeterRecord }): ReactNode {
  const texts = useTexts(METER_TEXTS);
  const language = useLanguage();
  const { days = DEFAULT_DAYS } = useSearch({ from: FROM });
  const navigate = useNavigate({ from: FROM });
  const [now] = useState(() => new Date());
  const range = findRange(now, Number(days));
  const usage = useQuery(buildMeterUsageQuery(meter.id, range));
  return (
    <Section
      title={texts.usage}
      hint={texts.usageHint}
      end={
        <Choice
          label={texts.usage}
          value={days}
          options={METER_DAYS.map((each) => ({ value: each, label: texts.days(each) }))}
          onValue={(next) =>
            void navigate({
              search: (old) => ({ ...old, days: next === DEFAULT_DAYS ? undefined : next }),
              resetScroll: false,
            })
          }
        />
      }
    >
      <Loaded query={usage} rows={5}>
        {({ value, event_count, results }) => (
          <>
            <div className={styles.number}>
              <Quantity value={value} />
            </div>
            <p className="label">
              {texts.total(days)}, {texts.ofEvents(formatCount(language, event_count))} ·{' '}
              <Link from={FROM} to="/env/$environment_id/usage">
                {texts.openUsage}
              </Link>
            </p>
            <div className={styles.bars}>
              <Bars
                label={`${meter.name}, ${texts.perDay}`}
                points={fillDays(results ?? [], range)}
                showAt={(at) => formatDay(language, at, 'UTC')}
              />
            </div>
          </>
        )}
      </Loaded>
    </Section>
  );
}
