// What Grafana publishes of its dashboards, with the options of the kinds of panels that ours has. Stored options may be partial.
import type { Dashboard, FieldConfig, FieldConfigSource, Panel, RowPanel } from '@grafana/schema/dist/types/index';
import type * as heatmap from '@grafana/schema/dist/types/raw/composable/heatmap/panelcfg/x/types.gen';
import type * as stat from '@grafana/schema/dist/types/raw/composable/stat/panelcfg/x/types.gen';
import type * as timeseries from '@grafana/schema/dist/types/raw/composable/timeseries/panelcfg/x/types.gen';

interface Defaults<Custom> extends Omit<FieldConfig, 'custom'> { custom?: Partial<Custom> }
interface Fields<Custom> extends Omit<FieldConfigSource, 'defaults'> { defaults: Defaults<Custom> }
interface Of<Kind, Options, Custom> extends Omit<Panel, 'type' | 'options' | 'fieldConfig'> {
  type: Kind;
  options?: Partial<Options>;
  fieldConfig?: Fields<Custom>;
}
type Known =
  | RowPanel
  | Of<'heatmap', heatmap.Options, heatmap.FieldConfig>
  | Of<'stat', stat.Options, Record<string, never>>
  | Of<'timeseries', timeseries.Options, timeseries.FieldConfig>;
export interface TimerDashboard extends Omit<Dashboard, 'panels'> { panels: Known[] }
