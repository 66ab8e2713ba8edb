// The older generation runs this with node.
const fs = require('fs');
fs.writeFileSync('argv-54_script', process.argv.slice(2).map((word) => word + '\n').join(''));
fs.appendFileSync(process.env.SNAP_DIR + '/order.txt', '54_script\n');
console.log(JSON.stringify({type: 'ArchiveResult', status: 'noresult', output_str: 'nothing'}));
