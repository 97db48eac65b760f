/** The first step: a template or a sentence makes the catalogue at once. */
import { Textarea } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { type FormEvent, type ReactNode, useState } from 'react';
import { api, readData } from '../../client/client.ts';
import { useMayNot } from '../../client/permission.ts';
import { invalidate } from '../../client/queries.ts';
import { showApiText } from '../../components/api-text.ts';
import { Button } from '../../components/button.tsx';
import { type Deed, useDeed } from '../../components/form.tsx';
import { useTexts } from '../../texts/texts.ts';
import { createCatalogue } from './create-catalogue.ts';
import styles from './first-bill.module.css';
import { Step, type StepProps } from './step.tsx';
import { type CatalogueDraft, TEMPLATE_KEYS, TEMPLATES } from './templates.ts';
import { TEXTS } from './texts.ts';

export function SellStep({ bill, ...step }: StepProps): ReactNode {
  const texts = useTexts(TEXTS);
  const queries = useQueryClient();
  const create = useDeed(createCatalogue, () => invalidate(queries, '/meters', '/plans', '/prices', '/features'));
  const blocked = useMayNot(['plan:write', 'meter:write', 'price:write']);
  const mayNotGenerate = useMayNot('ai:write');
  return (
    <Step {...step} title={texts.sell} summary={step.isDone ? <Sold bill={bill} /> : texts.sellHint}>
      <div className={styles.templates}>
        {TEMPLATE_KEYS.map((key) => (
          <Button
            key={key}
            className={styles.template}
            blocked={blocked}
            isBusy={create.isPending}
            onClick={() => create.mutate(TEMPLATES[key])}
          >
            <b>{texts[key]}</b>
            <span>{texts[`${key}Hint`]}</span>
          </Button>
        ))}
      </div>
      {create.error && (
        <p role="alert" className={styles.error}>
          {showApiText(create.error.message)}
        </p>
      )}
      <Sentence create={create} blocked={blocked ?? mayNotGenerate} />
    </Step>
  );
}

function Sold({ bill: { meters, prices, plans } }: Pick<StepProps, 'bill'>): ReactNode {
  const texts = useTexts(TEXTS);
  const plan = plans.at(-1);
  return (
    <>
      {texts.sold(meters.length, prices.length)}
      {plan && (
        <Link to="/env/$environment_id/plans/$plan_id" from="/env/$environment_id" params={{ plan_id: plan.id }}>
          <bdi>{plan.name}</bdi>
        </Link>
      )}
      .
    </>
  );
}

function Sentence({ create, blocked }: { create: Deed<CatalogueDraft, void>; blocked: string | null }): ReactNode {
  const texts = useTexts(TEXTS);
  const [description, setDescription] = useState('');
  const parse = useDeed(() => readData(api.POST('/ai/pricing/parse', { body: { description } })));
  const submit = (event: FormEvent) => {
    event.preventDefault();
    parse.mutate(undefined);
  };
  const parsed = parse.data;
  return (
    <form onSubmit={submit} className={styles.sentence}>
      <Textarea
        label={texts.sentence}
        description={texts.sentenceHint}
        placeholder={texts.sentenceExample}
        autosize
        minRows={2}
        value={description}
        error={parse.error && showApiText(parse.error.message)}
        onChange={({ currentTarget }) => {
          setDescription(currentTarget.value);
          parse.reset();
        }}
      />
      {parsed && (
        <div className={styles.parsed} role="status">
          <p>{texts.understood(parsed.plans.length, parsed.meters.length, parsed.prices.length)}</p>
          <Remarks
            label={texts.notUnderstood}
            remarks={parsed.not_understood.map(({ text, reason }) => `${text} (${reason})`)}
            isBad
          />
          <Remarks label={texts.assumed} remarks={parsed.assumptions} />
        </div>
      )}
      <div className={styles.actions}>
        {parsed && parsed.prices.length > 0 ? (
          <Button
            isPrimary
            blocked={blocked}
            isBusy={create.isPending}
            onClick={() => create.mutate(parsed as unknown as CatalogueDraft)}
          >
            {texts.make}
          </Button>
        ) : (
          <Button type="submit" blocked={blocked} isBusy={parse.isPending}>
            {texts.read}
          </Button>
        )}
      </div>
    </form>
  );
}

function Remarks({
  label,
  remarks,
  isBad = false,
}: {
  label: string;
  remarks: readonly string[];
  isBad?: boolean;
}): ReactNode {
  if (remarks.length === 0) return null;
  return (
    <p className={isBad ? styles.bad : undefined}>
      {label} {remarks.join(' · ')}
    </p>
  );
}
