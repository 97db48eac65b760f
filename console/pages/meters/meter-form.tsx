/** The fields of a meter. Names and properties that came in lately are offered; any other can be typed. */
import { Autocomplete, Radio, Select, TextInput } from '@mantine/core';
import type { ReactNode } from 'react';
import { useGet } from '../../client/queries.ts';
import { showApiText } from '../../components/api-text.ts';
import { Choice } from '../../components/choice.tsx';
import { NumberInput } from '../../components/number-input.tsx';
import { Section } from '../../components/page.tsx';
import { formatQuantity } from '../../figures/format.ts';
import { useLanguage, useTexts } from '../../texts/texts.ts';
import { ExpressionInput } from './expression-input.tsx';
import { FilterRows } from './filter-rows.tsx';
import {
  AGGREGATION_CHOICES,
  type AggregationChoice,
  BUCKET_SIZES,
  canBucket,
  canGroup,
  hasValue,
  type MeterDraft,
} from './meter-draft.ts';
import { METER_TEXTS } from './meter-texts.ts';
import styles from './meters.module.css';

export type MeterFormProps = {
  draft: MeterDraft;
  onDraft: (draft: MeterDraft) => void;
  /** Message of the API for a field. */
  errorAt: (field: string) => string | undefined;
};

const SAMPLES_SHOWN = 4;

export function MeterForm({ draft, onDraft, errorAt }: MeterFormProps): ReactNode {
  const texts = useTexts(METER_TEXTS);
  const language = useLanguage();
  const names = useGet('/events/names', { query: { days: '7' } as never });
  const properties = useGet(
    '/events/properties',
    { query: { event_name: draft.event_name, days: '7' } as never },
    { enabled: draft.event_name.trim() !== '' },
  );
  const change = (changes: Partial<MeterDraft>) => onDraft({ ...draft, ...changes });
  const seen = names.data?.items ?? [];
  const found = seen.find(({ event_name }) => event_name === draft.event_name.trim());
  const counts = new Map(seen.map(({ event_name, event_count }) => [event_name, event_count]));
  return (
    <>
      <Section title={texts.what}>
        <Autocomplete
          label={texts.eventName}
          description={texts.eventHint}
          required
          classNames={{ input: 'mono' }}
          className={styles.field}
          data={seen.map(({ event_name }) => event_name)}
          value={draft.event_name}
          onChange={(event_name) => change({ event_name })}
          error={showApiText(errorAt('event_name'))}
          renderOption={({ option }) => (
            <span className={styles.option}>
              <span className="mono">{option.value}</span>
              <span className="label">
                {texts.seenTimes(formatQuantity(language, counts.get(option.value) ?? '0'))}
              </span>
            </span>
          )}
        />
        {names.data && draft.event_name.trim() !== '' && !found && (
          <p className="label" role="status">
            {texts.unseen(draft.event_name.trim())}
          </p>
        )}
        <FilterRows
          filters={draft.filters}
          onFilters={(filters) => change({ filters })}
          properties={properties.data?.items ?? []}
          error={showApiText(errorAt('filters'))}
        />
      </Section>
      <Section title={texts.how}>
        <Radio.Group
          aria-label={texts.how}
          value={draft.type}
          onChange={(type) => change({ type: type as AggregationChoice })}
          error={showApiText(errorAt('type'))}
        >
          <div className={styles.aggregations}>
            {AGGREGATION_CHOICES.map((type) => (
              <Radio.Card key={type} value={type} className={styles.card}>
                <Radio.Indicator size="xs" />
                <span>
                  <span className={styles.cardName}>{texts.aggregation(type)}</span>
                  <span className="label">{texts.sentence(type)}</span>
                </span>
              </Radio.Card>
            ))}
          </div>
        </Radio.Group>
      </Section>
      {hasValue(draft.type) && (
        <Section
          title={texts.value}
          end={
            <Choice
              label={texts.source}
              value={draft.source}
              options={[
                { value: 'field', label: texts.fromField },
                { value: 'expression', label: texts.fromExpression },
              ]}
              onValue={(source) => change({ source })}
            />
          }
        >
          <ValueFields {...{ draft, change, errorAt }} properties={properties.data?.items ?? []} />
        </Section>
      )}
      <Section title={texts.naming}>
        <div className={styles.fields}>
          <TextInput
            label={texts.meterName}
            required
            value={draft.name}
            onChange={({ currentTarget }) => change({ name: currentTarget.value })}
            error={showApiText(errorAt('name'))}
          />
          <Select
            label={texts.reset}
            allowDeselect={false}
            data={[
              { value: 'BILLING_PERIOD', label: texts.resetPeriod },
              { value: 'NEVER', label: texts.resetNever },
            ]}
            value={draft.reset_usage}
            onChange={(reset) => reset && change({ reset_usage: reset as MeterDraft['reset_usage'] })}
            error={showApiText(errorAt('reset_usage'))}
          />
        </div>
      </Section>
    </>
  );
}

export type SeenProperty = { property: string; value_type: string; sample_values: readonly string[] };

function ValueFields({
  draft,
  change,
  errorAt,
  properties,
}: {
  draft: MeterDraft;
  change: (changes: Partial<MeterDraft>) => void;
  errorAt: (field: string) => string | undefined;
  properties: readonly SeenProperty[];
}): ReactNode {
  const texts = useTexts(METER_TEXTS);
  const names = properties.map(({ property }) => property);
  const chosen = properties.find(({ property }) => property === draft.field);
  const hasTexts =
    draft.type !== 'COUNT_UNIQUE' &&
    chosen !== undefined &&
    chosen.sample_values.length > 0 &&
    !chosen.sample_values.some((value) => /^[-+]?\d*\.?\d+(?:e[-+]?\d+)?$/i.test(value));
  return (
    <div className={styles.fields}>
      {draft.source === 'field' ? (
        <Autocomplete
          label={texts.field}
          required
          classNames={{ input: 'mono' }}
          data={names}
          value={draft.field}
          onChange={(field) => change({ field })}
          error={showApiText(errorAt('field'))}
          description={
            hasTexts
              ? texts.notNumbers
              : chosen && chosen.sample_values.length > 0
                ? texts.samples(chosen.sample_values.slice(0, SAMPLES_SHOWN).join(', '))
                : undefined
          }
        />
      ) : (
        <ExpressionInput
          value={draft.expression}
          onValue={(expression) => change({ expression })}
          error={errorAt('expression')}
        />
      )}
      {draft.type === 'SUM_WITH_MULTIPLIER' && (
        <NumberInput
          label={texts.multiplier}
          required
          value={draft.multiplier}
          onValue={(multiplier) => change({ multiplier })}
          error={showApiText(errorAt('multiplier'))}
        />
      )}
      {canBucket(draft.type) && (
        <Select
          label={texts.buckets}
          allowDeselect={false}
          data={[
            { value: '', label: texts.noBuckets },
            ...BUCKET_SIZES.map((size) => ({ value: size, label: texts.bucket(size) })),
          ]}
          value={draft.bucket_size}
          onChange={(size) => change({ bucket_size: size ?? '' })}
          error={showApiText(errorAt('bucket_size'))}
        />
      )}
      {canGroup(draft) && (
        <Autocomplete
          label={texts.groupBy}
          description={texts.groupHint}
          classNames={{ input: 'mono' }}
          data={names}
          value={draft.group_by}
          onChange={(group_by) => change({ group_by })}
          error={showApiText(errorAt('group_by'))}
        />
      )}
    </div>
  );
}
