/** Builds a meter, beside the number that the real events of the last week give under it. */
import { useQueryClient } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { type FormEvent, type ReactNode, useState } from 'react';
import { ApiError, api, readData } from '../../client/client.ts';
import { useMayNot } from '../../client/permission.ts';
import { invalidate } from '../../client/queries.ts';
import { showApiText } from '../../components/api-text.ts';
import { Button, buttonClass } from '../../components/button.tsx';
import { useDeed } from '../../components/form.tsx';
import { useShowMessage } from '../../components/message.ts';
import { Columns, PageHead } from '../../components/page.tsx';
import { useTexts } from '../../texts/texts.ts';
import { EventTester } from './event-tester.tsx';
import { buildMeterRequest, createMeterDraft, findRange, type MeterDraft } from './meter-draft.ts';
import { MeterForm } from './meter-form.tsx';
import { METER_TEXTS } from './meter-texts.ts';
import { MeterTrial, useTrial } from './meter-trial.tsx';
import styles from './meters.module.css';

const FROM = '/env/$environment_id/meters/new';
const TRIAL_DAYS = 7;

export function NewMeterPage(): ReactNode {
  const texts = useTexts(METER_TEXTS);
  const showMessage = useShowMessage();
  const { event } = useSearch({ from: FROM });
  const navigate = useNavigate({ from: FROM });
  const queries = useQueryClient();
  const mayNot = useMayNot('meter:write');
  const [draft, setDraft] = useState<MeterDraft>(() => createMeterDraft(event ?? ''));
  const [range] = useState(() => findRange(new Date(), TRIAL_DAYS));
  const trial = useTrial(draft, range);
  const create = useDeed(
    () => readData(api.POST('/meters', { body: buildMeterRequest(draft) as never })),
    async (meter) => {
      await invalidate(queries, '/meters', '/events');
      showMessage(texts.created(meter.name));
      await navigate({ to: '/env/$environment_id/meters/$meter_id', params: { meter_id: meter.id }, search: {} });
    },
  );
  const errorAt = (field: string) => findError(create.error, field) ?? findError(trial.error, field);
  const submit = (submitted: FormEvent) => {
    submitted.preventDefault();
    create.mutate(undefined);
  };
  const isElsewhere = create.error instanceof ApiError && create.error.field !== null;
  return (
    <Columns
      side={
        <div className={styles.side}>
          <MeterTrial draft={draft} range={range} trial={trial} />
          <EventTester draft={draft} isBroken={trial.error !== null} />
        </div>
      }
    >
      <form onSubmit={submit}>
        <PageHead title={draft.name === '' ? texts.newMeter : draft.name} subtitle={texts.metersHint} />
        <MeterForm draft={draft} onDraft={setDraft} errorAt={errorAt} />
        {create.error && (
          <p role="alert" className={isElsewhere ? 'visually-hidden' : styles.fault}>
            {showApiText(create.error.message)}
          </p>
        )}
        <div className={styles.foot}>
          <Link from={FROM} to="/env/$environment_id/meters" className={buttonClass}>
            {texts.discard}
          </Link>
          <Button type="submit" isPrimary isBusy={create.isPending} blocked={mayNot}>
            {texts.create}
          </Button>
        </div>
      </form>
    </Columns>
  );
}

/** A trial names the fields of its own request; both are fields of the form. */
const TRIAL_NAMES: Record<string, string> = {
  property_name: 'field',
  aggregation_type: 'type',
  group_by_property: 'group_by',
};

function findError(error: Error | null, field: string): string | undefined {
  if (!(error instanceof ApiError) || error.field === null) return undefined;
  const bare = error.field.replace(/^aggregation\./, '');
  const named = TRIAL_NAMES[bare] ?? bare;
  const isWithin = field === 'filters' && named.startsWith('filters');
  return named === field || isWithin ? error.message.replace(`${error.field}: `, '') : undefined;
}
