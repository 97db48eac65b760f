import { WorkflowRun } from '../../../core/platform/workflow/record.ts';
import { ScopedModel } from './model.ts';

export interface WorkflowRunModel extends WorkflowRun {}

export class WorkflowRunModel extends ScopedModel {
  static override tableName = 'workflow_runs';
  static override recordName = 'workflow';
  /** Not audited, because users do not change the progress of a run. */
  static override isAudited = false;
  static override record = WorkflowRun;
}
