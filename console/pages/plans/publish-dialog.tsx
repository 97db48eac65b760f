/** Publishing: from when, for whom, and whether running subscriptions get the price at once. */
import { Checkbox } from '@mantine/core';
import { type ReactNode, useState } from 'react';
import { Confirm } from '../../components/confirm.tsx';
import { formatInstant } from '../../figures/format.ts';
import { useLanguage, useTexts } from '../../texts/texts.ts';
import { PRICE_TEXTS } from './price-texts.ts';

type PublishDialogProps = {
  /** Empty for the moment of publishing. */
  startsAt: string;
  /** A new price, a new version of one, or a change of its name alone. */
  kind: 'new' | 'version' | 'name';
  runningCount: number;
  onPublish: (isRolledOut: boolean) => Promise<unknown>;
  onClose: () => void;
};

export function PublishDialog({ startsAt, kind, runningCount, onPublish, onClose }: PublishDialogProps): ReactNode {
  const texts = useTexts(PRICE_TEXTS);
  const language = useLanguage();
  const [isRolledOut, setRolledOut] = useState(false);
  return (
    <Confirm
      needs="price:write"
      title={texts.publishTitle}
      action={texts.publishAction}
      onConfirm={() => onPublish(isRolledOut)}
      onClose={onClose}
    >
      {kind === 'name' ? (
        <p>{texts.publishInPlace}</p>
      ) : (
        <>
          <p>{startsAt === '' ? texts.publishNow : texts.publishStart(formatInstant(language, startsAt, 'UTC'))}</p>
          {kind === 'version' && <p>{texts.publishNewVersion}</p>}
          <p>
            {texts.publishNewSubs} {runningCount > 0 && texts.publishRunning(runningCount)}
          </p>
          {runningCount > 0 && (
            <Checkbox
              label={texts.rollOut}
              description={texts.rollOutHint}
              checked={isRolledOut}
              onChange={({ currentTarget }) => setRolledOut(currentTarget.checked)}
            />
          )}
        </>
      )}
    </Confirm>
  );
}
