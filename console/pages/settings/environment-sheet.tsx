/** Makes or renames an environment, or copies the catalogue of this one into another. */
import { Select, TextInput } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import { type FormEvent, type ReactNode, useState } from 'react';
import { api, readData } from '../../client/client.ts';
import { invalidate, useGet } from '../../client/queries.ts';
import { Choice } from '../../components/choice.tsx';
import { CopyId } from '../../components/copy.tsx';
import { findFieldError } from '../../components/field-errors.ts';
import { FormFoot, useDeed } from '../../components/form.tsx';
import { RecordTools } from '../../components/record-tools.tsx';
import { SideSheet } from '../../components/side-sheet.tsx';
import { useTexts } from '../../texts/texts.ts';
import { CopyProgress } from './copy-progress.tsx';
import { ENVIRONMENT_TEXTS } from './environment-texts.ts';
import { ENVIRONMENTS_MAX } from './environments-tab.tsx';
import styles from './settings.module.css';
import type { SheetProps } from './tab-props.ts';

type EnvironmentType = 'development' | 'production';

export function EnvironmentSheet({ sheet, id, onClose }: SheetProps): ReactNode {
  if (sheet === 'new') return <NewEnvironment onClose={onClose} />;
  if (sheet === 'copy') return <CopyCatalogue onClose={onClose} />;
  return id === undefined ? null : <OpenEnvironment id={id} onClose={onClose} />;
}

function useEnvironments() {
  const environments = useGet('/environments', { query: { limit: ENVIRONMENTS_MAX } });
  return environments.data?.environments ?? [];
}

function NewEnvironment({ onClose }: { onClose: () => void }): ReactNode {
  const texts = useTexts(ENVIRONMENT_TEXTS);
  const queries = useQueryClient();
  const [name, setName] = useState('');
  const [type, setType] = useState<EnvironmentType>('development');
  const create = useDeed(
    () => readData(api.POST('/environments', { body: { name, type } })),
    async () => {
      await invalidate(queries, '/environments', '/auth/session');
      onClose();
    },
  );
  const submit = (event: FormEvent) => {
    event.preventDefault();
    create.mutate(undefined);
  };
  return (
    <SideSheet title={texts.createTitle} onClose={onClose}>
      <form className={styles.form} onSubmit={submit}>
        <TextInput
          label={texts.name}
          required
          value={name}
          error={findFieldError(create, 'name')}
          onChange={({ currentTarget }) => setName(currentTarget.value)}
        />
        <TypeChoice type={type} onType={setType} />
        <FormFoot needs="environment:write" deed={create} fields={['name']} action={texts.createNow} />
      </form>
    </SideSheet>
  );
}

function TypeChoice({ type, onType }: { type: EnvironmentType; onType: (type: EnvironmentType) => void }): ReactNode {
  const texts = useTexts(ENVIRONMENT_TEXTS);
  return (
    <div>
      <Choice
        label={texts.type}
        value={type}
        onValue={onType}
        options={[
          { value: 'development', label: texts.development },
          { value: 'production', label: texts.production },
        ]}
      />
      <p className="label">{type === 'production' ? texts.productionHint : texts.developmentHint}</p>
    </div>
  );
}

function OpenEnvironment({ id, onClose }: { id: string; onClose: () => void }): ReactNode {
  const environment = useEnvironments().find((each) => each.id === id);
  return environment ? <Rename key={id} environment={environment} onClose={onClose} /> : null;
}

function Rename({
  environment,
  onClose,
}: {
  environment: { id: string; name: string; type: EnvironmentType };
  onClose: () => void;
}): ReactNode {
  const texts = useTexts(ENVIRONMENT_TEXTS);
  const queries = useQueryClient();
  const { id } = environment;
  const [name, setName] = useState(environment.name);
  const rename = useDeed(
    () => api.PUT('/environments/{id}', { params: { path: { id } }, body: { name } }),
    () => invalidate(queries, '/environments', '/auth/session'),
  );
  const submit = (event: FormEvent) => {
    event.preventDefault();
    rename.mutate(undefined);
  };
  return (
    <SideSheet title={<bdi>{environment.name}</bdi>} subtitle={<CopyId id={id} />} onClose={onClose}>
      <form className={styles.form} onSubmit={submit}>
        <TextInput
          label={texts.name}
          description={texts.typeStays(texts[environment.type])}
          required
          value={name}
          error={findFieldError(rename, 'name')}
          onChange={({ currentTarget }) => setName(currentTarget.value)}
        />
        <FormFoot
          needs="environment:write"
          deed={rename}
          fields={['name']}
          action={texts.rename}
          blocked={name === environment.name ? texts.noChange : null}
        />
      </form>
      <RecordTools record={environment} path={`/environments/${id}`} entity_id={id} />
    </SideSheet>
  );
}

const NEW = 'new';

function CopyCatalogue({ onClose }: { onClose: () => void }): ReactNode {
  const texts = useTexts(ENVIRONMENT_TEXTS);
  const queries = useQueryClient();
  const { environment_id } = useParams({ from: '/env/$environment_id/settings' });
  const environments = useEnvironments();
  const [target, setTarget] = useState<string>(NEW);
  const [name, setName] = useState('');
  const [type, setType] = useState<EnvironmentType>('production');
  const source = environments.find(({ id }) => id === environment_id)?.name ?? environment_id;
  const copy = useDeed(
    () =>
      readData(
        api.POST('/environments/{id}/clone', {
          params: { path: { id: environment_id } },
          body: target === NEW ? { name, type } : { target_environment_id: target },
        }),
      ),
    () => invalidate(queries, '/environments', '/auth/session'),
  );
  const submit = (event: FormEvent) => {
    event.preventDefault();
    copy.mutate(undefined);
  };
  if (copy.data) return <CopyProgress workflow={copy.data} onClose={onClose} />;
  return (
    <SideSheet title={texts.copyTitle(source)} subtitle={texts.copyHint} onClose={onClose}>
      <form className={styles.form} onSubmit={submit}>
        <Select
          label={texts.target}
          allowDeselect={false}
          value={target}
          error={findFieldError(copy, 'target_environment_id')}
          onChange={(value) => setTarget(value ?? NEW)}
          data={[
            { value: NEW, label: texts.newTarget },
            ...environments
              .filter(({ id }) => id !== environment_id)
              .map((each) => ({ value: each.id, label: `${each.name} · ${texts[each.type]}` })),
          ]}
        />
        {target === NEW && (
          <>
            <TextInput
              label={texts.name}
              required
              value={name}
              error={findFieldError(copy, 'name')}
              onChange={({ currentTarget }) => setName(currentTarget.value)}
            />
            <TypeChoice type={type} onType={setType} />
          </>
        )}
        <FormFoot
          needs="environment:write"
          deed={copy}
          fields={['target_environment_id', 'name']}
          action={texts.copyNow}
        />
      </form>
    </SideSheet>
  );
}
